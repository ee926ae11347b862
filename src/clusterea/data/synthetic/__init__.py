"""Generated pairs of knowledge graphs: one hidden world, two incomplete views of it."""

from clusterea.data.synthetic.generate import generate
from clusterea.data.synthetic.labels import LabelShape
from clusterea.data.synthetic.shapes import SHAPES, PairShape
from clusterea.data.synthetic.write import check_free, write_openea

__all__ = ["SHAPES", "LabelShape", "PairShape", "check_free", "generate", "write_openea"]
