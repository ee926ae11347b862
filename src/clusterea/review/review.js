// The page of `clusterea review`. Names come from the data: they are only ever set as text.
"use strict";

(() => {
  const settings = JSON.parse(document.getElementById("settings").textContent);
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const KEPT = "clusterea-answer"; // in sessionStorage: an answer that the server did not get yet
  const RETRY = 1000; // milliseconds
  const ACTIONS = [
    { key: "s", verdict: "same", text: "Same" },
    { key: "d", verdict: "different", text: "Not the same" },
    { key: "u", verdict: "unsure", text: "Can’t tell" },
    { key: "n", verdict: "none-source", text: "No counterpart of the left", short: "Left has none" },
    { key: "m", verdict: "none-target", text: "No counterpart of the right", short: "Right has none" },
    { key: "z", verdict: null, text: "Back" },
  ];
  const SAID = {
    same: "the same",
    different: "not the same",
    unsure: "can’t tell",
    "none-source": "the left has no counterpart",
    "none-target": "the right has no counterpart",
  };

  let question = null; // the pair that is asked about
  let looked = null; // {number, view} of a candidate that is shown in place of the target
  let progress = null;
  let busy = false;

  const at = (id) => document.getElementById(id);

  /** An element with a class and children; strings become text. */
  function make(tag, kind, ...children) {
    const element = document.createElement(tag);
    if (kind) element.className = kind;
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  const count = (number) => number.toLocaleString("en-US");
  const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  const arrow = (step) => (step.outward ? `${step.short} →` : `← ${step.short}`);

  /** A name in its own direction of writing; the id is its title. */
  function named(entity, kind) {
    const element = make("bdi", kind, entity.label ?? entity.short);
    element.title = entity.id;
    return element;
  }

  // ---- the server

  class Refused extends Error {}

  async function call(path, body) {
    const options = { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" };
    if (body !== undefined) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    const response = await fetch(path, options);
    const told = await response.json();
    if (!response.ok) throw new Refused(told.error ?? `status ${response.status}`);
    return told;
  }

  /** Calls until the server answers, and says meanwhile that it is gone. */
  async function insist(path, body) {
    for (;;) {
      try {
        const told = await call(path, body);
        at("trouble").hidden = true;
        return told;
      } catch (error) {
        if (error instanceof Refused) throw error;
        const kept = body?.verdict ? "Your answer is kept, and is sent when it is back. " : "";
        warn(`The server does not answer. ${kept}Start it again: clusterea review ${settings.run}`);
        await new Promise((resolve) => setTimeout(resolve, RETRY));
      }
    }
  }

  function warn(message) {
    if (at("trouble").hidden || at("trouble").textContent !== message) {
      at("trouble").textContent = message;
      at("trouble").hidden = false;
    }
  }

  async function doing(work) {
    if (busy) return;
    busy = true;
    document.documentElement.dataset.state = "busy";
    drawActions();
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      warn(`This was refused: ${error.message}`);
    } finally {
      busy = false;
      drawActions();
      document.documentElement.dataset.state = "ready";
    }
  }

  function take(told) {
    question = told.question;
    progress = told.progress;
    looked = null;
    draw();
    window.scrollTo(0, 0);
  }

  const start = () =>
    doing(async () => {
      const kept = sessionStorage.getItem(KEPT);
      if (kept !== null) await send(JSON.parse(kept));
      else take(await insist("api/question"));
    });

  async function send(body) {
    sessionStorage.setItem(KEPT, JSON.stringify(body));
    try {
      const told = await insist("api/answer", body);
      sessionStorage.removeItem(KEPT);
      tellLast(told.last);
      at("comment").value = "";
      take(told);
    } catch (error) {
      sessionStorage.removeItem(KEPT); // refused: it would be refused again
      error.message += " The answer was not kept.";
      throw error;
    }
  }

  function answer(verdict) {
    if (question === null || (looked !== null && verdict.startsWith("none"))) return;
    doing(() =>
      send({
        source: question.source.number,
        target: question.target.number,
        other: looked === null ? null : looked.view.target.number,
        verdict,
        comment: at("comment").value,
        random: question.random,
      }),
    );
  }

  function back() {
    if (looked !== null) {
      look(null);
      return;
    }
    if (!progress?.can_undo) return;
    doing(async () => {
      const told = await insist("api/undo", {});
      at("last").textContent = "The last answer is taken back.";
      at("last").hidden = false;
      take(told);
    });
  }

  /** Shows a candidate in place of the target; null for the target itself. */
  function look(number) {
    if (number === null) {
      looked = null;
      draw();
      return;
    }
    const candidate = question?.candidates[number];
    if (candidate === undefined) return;
    if (looked?.number === number) {
      answer("same");
      return;
    }
    doing(async () => {
      const pair = `source=${question.source.number}&target=${candidate.number}`;
      const told = await insist(`api/candidate?${pair}`);
      looked = { number, view: told.question };
      draw();
    });
  }

  // ---- drawing

  function draw() {
    drawProgress();
    const shown = looked?.view ?? question;
    for (const id of ["cards", "summary", "neighbors", "panels", "comment-line"]) at(id).hidden = shown === null;
    at("done").hidden = shown !== null;
    at("looking").hidden = looked === null;
    drawActions();
    if (shown === null) {
      drawDone();
      return;
    }
    at("looking").textContent =
      looked === null
        ? ""
        : `This is candidate ${looked.number + 1}. The keys answer the pair that is shown: ` +
          "S if the two are the same, Z to go back to the question.";
    at("cards").replaceChildren(card("source", shown), card("target", shown));
    at("cards").dataset.pair = `${shown.source.number} ${shown.target.number}`;
    drawSummary(shown);
    drawNeighbors(shown);
    drawEvidence(shown);
    drawOthers();
  }

  function drawProgress() {
    const told = progress;
    const number = (value, text) => [make("b", "", count(value)), ` ${text}`];
    const line = [
      ...number(told.answered, "answered, "),
      ...number(told.accepted, "accepted, "),
      ...number(told.rejected, "rejected"),
    ];
    if (told.rest !== null) {
      const rest = told.measure === "confidence" ? percent(told.rest) : told.rest.toFixed(3);
      line.push(`. Other links: mean ${told.measure} `, make("b", "", rest));
    }
    if (told.precision !== null && told.precision.sampled > 0) {
      const { value, low, high } = told.precision;
      line.push(". Precision about ", make("b", "", percent(value)));
      line.push(` (${percent(low)} to ${percent(high)})`);
    }
    at("progress").replaceChildren(...line, ".", make("span", "advice", told.advice));
    const share = (part) => `${(100 * part) / Math.max(told.links, 1)}%`;
    at("bar-accepted").style.width = share(told.accepted);
    at("bar-rejected").style.width = share(told.rejected);
  }

  function card(side, shown) {
    const entity = shown[side];
    const isLooked = looked !== null && side === "target";
    const title = make("h2", "");
    title.append(named(entity));
    const where = isLooked ? `Target, candidate ${looked.number + 1}` : side === "source" ? "Source" : "Target";
    const element = make(
      "article",
      isLooked ? "looked" : "",
      make("p", "side", where),
      title,
      make("p", "id", make("bdi", "", entity.id)),
      entity.labels.length ? make("p", "also", "also ", ...listed(entity.labels)) : null,
    );
    element.dataset.side = side;
    return element;
  }

  const listed = (texts) => texts.flatMap((text, i) => [i ? " · " : "", make("bdi", "", text)]);

  /** Rows of groups by relation. Relations that correspond are in one row. */
  function rows(shown) {
    const left = new Map(shown.target.groups.map((group) => [group.kind, group]));
    const found = [];
    for (const group of shown.source.groups) {
      const other = left.get(group.match?.kind) ?? null;
      if (other !== null) left.delete(other.kind);
      found.push([group, other]);
    }
    for (const group of left.values()) found.push([null, group]);
    const rank = ([one, other]) => (one !== null && other !== null ? 0 : one !== null ? 1 : 2);
    return found.sort((a, b) => rank(a) - rank(b));
  }

  function drawNeighbors(shown) {
    const title = make("h3", "", "Neighbors by relation");
    const legend = make("span", "legend", make("span", "mark-for", "✓"), " matched to each other  ", make("span", "mark-against", "✗"), " matched to an entity that is no neighbor of the other");
    title.append(legend);
    const lines = rows(shown).map(([one, other]) => {
      const sign = make("span", "sign", one !== null && other !== null ? "≈" : "");
      if (sign.textContent) sign.title = `The relations correspond in ${count(one.match.count)} of ${count(one.match.of)} edges between linked entities.`;
      return make("div", "row", ...half(one, "Source"), sign, ...half(other, "Target"));
    });
    const left = shown.source.more + shown.target.more;
    if (left) lines.push(make("p", "muted", `and ${plural(left, "relation", "relations")} more`));
    if (!lines.length) lines.push(make("p", "muted", "The two have no neighbors."));
    at("neighbors").replaceChildren(title, ...lines);
  }

  function half(group, side) {
    if (group === null) return [make("span", "relation none", ""), make("span", "none", "–")];
    const relation = make("span", "relation", make("span", "of", `${side} `), make("bdi", "", arrow(group)));
    relation.title = group.relation;
    const chips = make("ul", "chips", ...group.neighbors.map(chip));
    if (group.more) chips.append(make("li", "chip more", `and ${count(group.more)} more`));
    return [relation, chips];
  }

  function chip(neighbor) {
    const element = make("li", `chip ${neighbor.state}`, named(neighbor));
    if (!neighbor.state) return element;
    const isFor = neighbor.state === "for";
    const partner = neighbor.partner;
    element.title = isFor
      ? `matched to ${partner.id}, a neighbor of the other entity`
      : `matched to ${partner.id}, which is no neighbor of the other entity`;
    element.append(" ", make("span", isFor ? "mark-for" : "mark-against", isFor ? "✓" : "✗"));
    element.append(make("span", "hidden", isFor ? "matched to a neighbor of the other" : "matched elsewhere"));
    return element;
  }

  function drawSummary(shown) {
    const parts = [
      make("span", "mark-for", `✓ ${count(shown.for.total)} for`),
      make("span", "mark-against", `✗ ${count(shown.against.total)} against`),
      make("span", "muted", `${count(shown.source.neighbors)} and ${plural(shown.target.neighbors, "neighbor", "neighbors")}`),
    ];
    if (shown.found !== null) {
      const what = shown.found.link ? "The run links the two" : "The run does not link the two";
      const line = make("span", "found", `${what}: ${shown.found.measure} `, make("b", "", shown.found.value));
      line.title = shown.found.note;
      if (looked === null && question.random) line.append(make("span", "muted", " · drawn at random"));
      parts.push(line);
    }
    at("summary").replaceChildren(...parts);
  }

  function drawEvidence(shown) {
    const support = shown.for;
    const title = make("h3", "", make("span", "mark-for", "✓ "), `For: ${plural(support.total, "pair", "pairs")} of neighbors matched to each other`);
    title.id = "evidence-title";
    const against = shown.against;
    const what = `Against: ${plural(against.total, "neighbor", "neighbors")} matched to an entity that is no neighbor of the other`;
    at("evidence").replaceChildren(
      title,
      evidence(support.pairs.map(supportRow), support.total),
      make("h3", "", make("span", "mark-against", "✗ "), what),
      evidence(against.neighbors.map(objectionRow), against.total),
    );
  }

  function evidence(items, total) {
    const list = make("ul", "rows", ...items);
    if (total > items.length) list.append(make("li", "muted", `and ${count(total - items.length)} more`));
    return list;
  }

  const by = (steps) => make("span", "by", "by ", ...listed(steps.map(arrow)));

  function supportRow(row) {
    const sure = row.origin === "link" ? row.sure : row.origin === "seed" ? "seed" : "accepted";
    return make(
      "li",
      "",
      sure === null ? null : make("span", "sure", sure),
      named(row.source), " ", by(row.by[0]), " = ", named(row.target), " ", by(row.by[1]),
    );
  }

  function objectionRow(row) {
    const side = row.side === "source" ? "left: " : "right: ";
    return make("li", "", make("span", "muted", side), named(row.neighbor), " ", by(row.by), " is matched to ", named(row.partner));
  }

  function drawOthers() {
    const candidates = question.candidates;
    const title = make("h3", "", candidates.length ? "Other candidates of the left" : "There are no other candidates.");
    title.id = "others-title";
    at("others").replaceChildren(title, ...candidates.map(candidateButton));
  }

  function candidateButton(candidate, number) {
    const facts = [`${plural(candidate.evidence, "pair", "pairs")} of neighbors`];
    if (candidate.score !== undefined) facts.push(candidate.score);
    const name = make("span", "", named(candidate));
    if (candidate.label !== null) name.append(" ", make("bdi", "by", candidate.short));
    if (candidate.linked) name.append(make("span", "by", " matched to ", named(candidate.linked)));
    const key = number < 9 ? make("kbd", "", String(number + 1)) : make("span", "");
    const button = make("button", "", key, name, make("span", "facts", facts.join(", ")));
    button.type = "button";
    button.setAttribute("aria-pressed", String(looked?.number === number));
    button.addEventListener("click", () => look(looked?.number === number ? null : number));
    return button;
  }

  function tellLast(last) {
    const found = last.found;
    const agreed = found.link === (last.verdict === "same");
    const run = found.link ? "The run links them" : "The run does not link them";
    const parts = ["Last: ", make("bdi", "", last.pair), `: ${SAID[last.verdict]}. `];
    if (settings.blind) {
      const same = last.verdict === "unsure" ? "" : agreed ? " You agree." : " You disagree.";
      parts.push(`${run}: ${found.measure} ${found.value}.${same} `);
    }
    at("last").replaceChildren(...parts, make("span", "", "Z takes it back."));
    at("last").hidden = false;
  }

  function drawActions() {
    if (at("actions").childElementCount === 0) {
      for (const action of ACTIONS) {
        const button = make("button", action.verdict ?? "back", make("span", "", action.short ?? action.text), make("kbd", "", action.key.toUpperCase()));
        button.type = "button";
        button.title = action.text;
        button.setAttribute("aria-keyshortcuts", action.key);
        button.addEventListener("click", () => act(action));
        at("actions").append(button);
      }
    }
    at("actions").hidden = progress === null;
    ACTIONS.forEach((action, i) => {
      const button = at("actions").children[i];
      const isNone = action.verdict?.startsWith("none") ?? false;
      const can = action.verdict === null ? looked !== null || (progress?.can_undo ?? false) : question !== null && !(isNone && looked !== null);
      button.disabled = !can;
      button.setAttribute("aria-busy", String(busy));
    });
  }

  function drawDone() {
    at("done").replaceChildren(
      make("h2", "", progress.answered ? "There is nothing more to ask." : "There is nothing to ask."),
      make("p", "", "Align again with the same arguments and the same folder. Your answers are found there: accepted pairs become seeds, and rejected pairs are not linked."),
      make("pre", "", `clusterea align … --out ${settings.run}`),
      make("p", "muted", `The answers are in ${settings.run}/decisions.sssom.tsv. You can close this page; Ctrl-C ends the command.`),
    );
  }

  // ---- keys

  function act(action) {
    if (action.verdict === null) back();
    else answer(action.verdict);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target === at("comment")) {
      if (event.key === "Enter" || event.key === "Escape") at("comment").blur();
      return;
    }
    const key = event.key.toLowerCase();
    if (key === "c" && question !== null) at("comment").focus();
    else if (key === "escape") { if (looked !== null) look(null); }
    else if (key === "backspace") back();
    else if (/^[1-9]$/.test(key)) look(Number(key) - 1);
    else {
      const action = ACTIONS.find((each) => each.key === key);
      if (action === undefined) return;
      act(action);
    }
    event.preventDefault();
  });

  document.title = `Review ${settings.run}`;
  start();
})();
