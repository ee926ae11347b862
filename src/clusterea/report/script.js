"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);

  // ---- charts: drawn by Bokeh, colored by the style sheet for light and dark mode

  function paint(model, ink) {
    const set = {};
    const [fill, edge] = model.tags;
    const has = (name) => name in model.properties;
    if (typeof fill === "string" && fill.startsWith("--")) {
      if (has("fill_color")) set.fill_color = ink(fill);
      if (has("line_color")) set.line_color = ink(edge);
    }
    if (has("axis_line_color")) {
      set.axis_line_color = ink("--line");
      if (model.major_tick_line_color !== null) set.major_tick_line_color = ink("--line");
      set.major_label_text_color = set.axis_label_text_color = ink("--ink-muted");
    }
    if (has("grid_line_color")) set.grid_line_color = ink("--line");
    if (has("label_text_color")) set.label_text_color = ink("--ink-muted");
    model.setv(set);
  }

  function paintAll() {
    const style = getComputedStyle(document.documentElement);
    const ink = (name) => style.getPropertyValue(name).trim();
    for (const drawing of Bokeh.documents) {
      for (const root of drawing.roots()) {
        for (const model of root.references()) paint(model, ink);
      }
    }
  }

  async function drawCharts() {
    for (const place of document.querySelectorAll("[data-chart]")) {
      await Bokeh.embed.embed_item(data.charts[place.dataset.chart], place.id);
    }
    paintAll();
    document.documentElement.dataset.charts = "drawn";
  }

  // ---- matches

  const rows = document.getElementById("match-rows");
  const PAGE = 50;
  const VERDICTS = new Map([
    [1, ["right", "✓", "right"]],
    [0, ["wrong", "✗", "wrong"]],
    [-1, ["unknown", "–", "not judged"]],
  ]);
  const counts = new Intl.NumberFormat("en");
  const verdict = document.getElementById("verdict");
  const search = document.getElementById("search");
  const more = document.getElementById("more");

  // Text is never inserted as markup: a name may contain anything.
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  // The label of an entity and its name; only the name if there is no label, or the same.
  function entity(label, name) {
    if (!label || label === name) return [name];
    return [element("bdi", {}, label), " ", element("span", { class: "id" }, name)];
  }

  // Of an entity in the evidence, by the index of its name.
  function labelOf(side, name) {
    return data.labels && data.labels[side][name];
  }

  // Same rule as `rounded` in rounding.py: a share below 1 is never shown as 1.
  function rounded(share, decimals, most) {
    const inside = share > 0 && share < 1;
    const inPlaces = (number, places) => (number / 10 ** places).toFixed(places);
    let nearest, steps;
    for (const places of [decimals, decimals + 1]) {
      steps = most * 10 ** places;
      nearest = Math.floor(share * steps + 0.5);
      if (!inside || (nearest > 0 && nearest < steps)) return inPlaces(nearest, places);
    }
    return nearest <= 0 ? `<${inPlaces(1, decimals + 1)}` : `>${inPlaces(steps - 1, decimals + 1)}`;
  }

  // Same rule as `measured` in readable.py: a score is not shown in percent.
  function measured(confidenceInSteps) {
    const share = confidenceInSteps / data.confidence_steps;
    return data.measure === "confidence" ? `${rounded(share, 1, 100)}%` : rounded(share, 3, 1);
  }

  // The evidence by row, for the sample: {truth, ofSource, ofTarget, total, supports}.
  const evidenceOf = new Map();
  let links;

  const KEYS = {
    source: () => links.ranks("source"),
    target: () => links.ranks("target"),
    confidence: () => links.confidence,
    evidence: () => Int32Array.from({ length: links.length }, (_, row) =>
      evidenceOf.has(row) ? evidenceOf.get(row).total : -1),
  };

  const state = { key: "confidence", falling: true, order: null, found: [], shown: 0 };

  function find() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = verdict && verdict.value !== "" ? Number(verdict.value) : null;
    state.order ??= links.order(KEYS[state.key](), state.falling);
    state.found = links.find(words, wanted, state.order);
    state.shown = 0;
    rows.replaceChildren();
    showMore();
  }

  function showMore() {
    const next = Array.from(state.found.slice(state.shown, state.shown + PAGE), matchRow);
    rows.append(...next);
    state.shown += next.length;
    more.hidden = state.shown >= state.found.length;
    const all = links.length === state.found.length ? "" : ` (of ${counts.format(links.length)})`;
    document.getElementById("shown").textContent = state.found.length
      ? `Showing ${counts.format(state.shown)} of ${counts.format(state.found.length)} matches${all}`
      : "No matches found.";
  }

  function matchRow(number) {
    const names = links.names(number);
    const labels = links.labels(number);
    const open = element(
      "button",
      { type: "button", class: "open", "aria-expanded": "false", title: names.source },
      element("span", {}, ...entity(labels.source, Links.short(names.source))),
    );
    const row = element(
      "tr",
      { class: "match" },
      element("th", { scope: "row" }, open),
      element("td", { title: names.target }, ...entity(labels.target, Links.short(names.target))),
      element("td", { class: "number" }, measured(links.confidence[number])),
    );
    if (verdict) {
      const [kind, sign, words] = VERDICTS.get(links.verdicts[number]);
      row.append(element(
        "td",
        { class: "verdict" },
        element("span", { class: kind, "aria-hidden": "true" }, sign),
        element("span", { class: "hidden" }, words),
      ));
    }
    const known = evidenceOf.get(number);
    const total = known ? [counts.format(known.total)] : [
      element("span", { "aria-hidden": "true" }, "–"),
      element("span", { class: "hidden" }, "not on this page"),
    ];
    row.append(element("td", { class: "number" }, ...total));
    row.addEventListener("click", () => {
      if (!String(getSelection())) toggle(number, row, open); // not while text is selected
    });
    return row;
  }

  function toggle(number, row, open) {
    const expanded = open.getAttribute("aria-expanded") === "true";
    open.setAttribute("aria-expanded", String(!expanded));
    if (expanded) {
      row.nextElementSibling.remove();
      open.removeAttribute("aria-controls");
    } else {
      const id = `evidence-${number}`;
      open.setAttribute("aria-controls", id);
      const cell = element("td", { colspan: row.cells.length }, ...evidence(number));
      row.after(element("tr", { class: "evidence", id }, cell));
    }
  }

  function evidence(number) {
    const { source, target } = links.names(number);
    const labels = links.labels(number);
    const names = element(
      "dl", {},
      element("dt", {}, "Source"), element("dd", {}, ...entity(labels.source, source)),
      element("dt", {}, "Target"), element("dd", {}, ...entity(labels.target, target)),
    );
    const known = evidenceOf.get(number);
    if (!known) return [names, ...howToExplain(source)];
    const { truth, ofSource, ofTarget, total, supports } = known;
    if (truth >= 0) {
      names.append(
        element("dt", { class: "wrong" }, "Should be"),
        element("dd", {}, ...entity(labelOf("target", truth), data.names[truth])),
      );
    }
    const sizes = `The source has ${plural(ofSource)}, the target ${counts.format(ofTarget)}; `;
    if (!total) {
      return [names, element("p", {}, `${sizes}none of them are matched to each other.`)];
    }
    const left = total - supports.length;
    const shown = left ? `. The strongest ${supports.length} are shown.` : ".";
    const pairs = total === 1 ? "1 pair is" : `${counts.format(total)} pairs are`;
    const table = element(
      "table",
      { class: "supports" },
      element("caption", { class: "hidden" }, "Neighbors that are matched to each other"),
      element("thead", {}, element(
        "tr", {},
        element("th", { scope: "col" }, "Source’s neighbor"),
        element("th", { scope: "col", class: "link" }, "Matched"),
        element("th", { scope: "col" }, "Target’s neighbor"),
      )),
      element("tbody", {}, ...supports.map(supportRow)),
    );
    return [names, element("p", {}, `${sizes}${pairs} matched to each other${shown}`), table];
  }

  // Between single quotes, a shell leaves everything but a single quote as it is.
  function howToExplain(source) {
    const quoted = `'${source.replaceAll("'", "'\\''")}'`;
    return [
      element("p", {}, "This page has no evidence for this match. To see it, run this command with " +
        "the folder of the run in place of RUN:"),
      element("pre", {}, `clusterea explain RUN ${quoted}`),
    ];
  }

  function plural(number) {
    return `${counts.format(number)} ${number === 1 ? "neighbor" : "neighbors"}`;
  }

  function supportRow([source, target, confidence, sourceSteps, targetSteps]) {
    const how = confidence === null ? "seed" : measured(confidence);
    return element(
      "tr", {},
      neighborCell("source", source, sourceSteps),
      element("td", { class: "link" }, how),
      neighborCell("target", target, targetSteps),
    );
  }

  function neighborCell(side, neighbor, steps) {
    const name = data.names[neighbor];
    const cell = element(
      "td", { title: name }, ...entity(labelOf(side, neighbor), Links.short(name)),
    );
    for (let i = 0; i < steps.length; i += 2) {
      const relation = data.names[steps[i]];
      const outward = steps[i + 1] === 1;
      cell.append(element(
        "span",
        { class: "step", title: relation },
        element("span", { class: "hidden" }, outward ? "outgoing " : "incoming "),
        outward ? `${Links.short(relation)} →` : `← ${Links.short(relation)}`,
      ));
    }
    return cell;
  }

  function sortBy(header) {
    const { key } = header.dataset;
    const number = key === "confidence" || key === "evidence";
    state.falling = state.key === key ? !state.falling : number;
    state.key = key;
    state.order = null;
    for (const each of document.querySelectorAll("#match-table [aria-sort]")) {
      each.removeAttribute("aria-sort");
    }
    header.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
    find();
  }

  // Reads all links, or only the sample if the browser can't unpack them.
  async function readLinks() {
    const packed = document.getElementById("link-index");
    let place = data.rows;
    try {
      links = await Links.unpack(packed.textContent, data.links);
    } catch {
      place = [...data.matches.keys()];
      const cell = (text) => (text ?? "").replace(/[\t\r\n]/g, " ");
      const line = ([source, target]) => [
        data.names[source], data.names[target], labelOf("source", source), labelOf("target", target),
      ].map(cell).join("\t");
      links = new Links(
        data.matches.map(line).join("\n"),
        data.matches.map((match) => match[2]),
        data.matches.map((match) => match[3]),
      );
      for (const note of document.querySelectorAll("#matches .note")) note.hidden = !note.hidden;
    }
    packed.remove(); // frees megabytes
    data.matches.forEach(([, , , , truth, ofSource, ofTarget, total, supports], number) => {
      evidenceOf.set(place[number], { truth, ofSource, ofTarget, total, supports });
    });
  }

  async function startTable() {
    document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
    await readLinks();
    search.addEventListener("input", find);
    if (verdict) verdict.addEventListener("change", find);
    more.addEventListener("click", showMore);
    for (const header of document.querySelectorAll("#match-table th[data-key]")) {
      header.addEventListener("click", () => sortBy(header)); // the button's click comes here too
    }
    find();
    document.documentElement.dataset.matches = "ready";
  }

  Bokeh.set_log_level("error");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintAll);
  drawCharts().finally(() => rows && startTable());
})();
