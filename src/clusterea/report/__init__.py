"""The report of an alignment, and the evidence for each match."""

from clusterea.report.collect import collect
from clusterea.report.data import GraphSize, Match, MiniBatches, ReportData
from clusterea.report.evidence import Evidence, EvidenceIndex, Step, Support, evidence
from clusterea.report.report import render_report, write_report

__all__ = [
    "Evidence",
    "EvidenceIndex",
    "GraphSize",
    "Match",
    "MiniBatches",
    "ReportData",
    "Step",
    "Support",
    "collect",
    "evidence",
    "render_report",
    "write_report",
]
