"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);

  // ---- charts: drawn by Bokeh, colored from the style sheet, so that they follow light and dark

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
    [-1, ["unknown", "–", "the test links say nothing"]],
  ]);
  const percents = new Intl.NumberFormat("en", {
    style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1,
  });
  const counts = new Intl.NumberFormat("en");
  const verdict = document.getElementById("verdict");
  const search = document.getElementById("search");
  const more = document.getElementById("more");

  // All text goes in as text, never as markup: a name may hold anything.
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text; // a lone percent sign
    }
  }

  // Of an address the last part: what a person knows the thing by.
  function short(name) {
    if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(name)) return name;
    const last = name.replace(/[/#]+$/, "").split(/[/#]/).pop();
    return last ? decoded(last) : name;
  }

  const matches = data.matches.map((row, number) => {
    const [source, target, confidence, right, truth, ofSource, ofTarget, total, supports] = row;
    const names = { source: data.names[source], target: data.names[target] };
    const text = `${names.source}\n${names.target}`;
    return {
      number, confidence, right, total, supports, ofSource, ofTarget,
      truth: truth < 0 ? null : data.names[truth],
      ...names,
      text: `${text}\n${decoded(text)}`.toLowerCase(),
    };
  });

  const KEYS = {
    source: (match) => short(match.source).toLowerCase(),
    target: (match) => short(match.target).toLowerCase(),
    confidence: (match) => match.confidence,
    evidence: (match) => match.total,
  };

  const state = { key: "confidence", falling: true, found: [], shown: 0 };

  function find() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = verdict ? verdict.value : "";
    const key = KEYS[state.key];
    const sign = state.falling ? -1 : 1;
    state.found = matches
      .filter((match) => wanted === "" || match.right === Number(wanted))
      .filter((match) => words.every((word) => match.text.includes(word)))
      .map((match) => [key(match), match])
      .sort(([a, first], [b, second]) =>
        a < b ? -sign : a > b ? sign : first.number - second.number)
      .map(([, match]) => match);
    state.shown = 0;
    rows.replaceChildren();
    showMore();
  }

  function showMore() {
    const next = state.found.slice(state.shown, state.shown + PAGE);
    rows.append(...next.map(matchRow));
    state.shown += next.length;
    more.hidden = state.shown >= state.found.length;
    const all = matches.length === state.found.length ? "" : ` (of ${counts.format(matches.length)})`;
    document.getElementById("shown").textContent = state.found.length
      ? `Showing ${counts.format(state.shown)} of ${counts.format(state.found.length)} matches${all}`
      : "No match fits.";
  }

  function matchRow(match) {
    const open = element(
      "button",
      { type: "button", class: "open", "aria-expanded": "false", title: match.source },
      short(match.source),
    );
    const row = element(
      "tr",
      { class: "match" },
      element("th", { scope: "row" }, open),
      element("td", { title: match.target }, short(match.target)),
      element("td", { class: "number" }, percents.format(match.confidence)),
    );
    if (verdict) {
      const [kind, sign, words] = VERDICTS.get(match.right);
      row.append(element(
        "td",
        { class: "verdict" },
        element("span", { class: kind, "aria-hidden": "true" }, sign),
        element("span", { class: "hidden" }, words),
      ));
    }
    row.append(element("td", { class: "number in-wide" }, counts.format(match.total)));
    row.addEventListener("click", () => {
      if (!String(getSelection())) toggle(match, row, open); // marking text is not choosing
    });
    return row;
  }

  function toggle(match, row, open) {
    const expanded = open.getAttribute("aria-expanded") === "true";
    open.setAttribute("aria-expanded", String(!expanded));
    if (expanded) {
      row.nextElementSibling.remove();
      open.removeAttribute("aria-controls");
    } else {
      const id = `evidence-${match.number}`;
      open.setAttribute("aria-controls", id);
      row.after(element("tr", { class: "evidence", id }, element("td", {}, ...evidence(match))));
      spanRows();
    }
  }

  // A narrow window hides a column; evidence that spanned it would bring it back.
  function spanRows() {
    const columns = [...document.querySelectorAll("#match-table > thead th")];
    const visible = columns.filter((column) => column.offsetParent !== null).length;
    for (const cell of document.querySelectorAll("tr.evidence > td")) cell.colSpan = visible;
  }

  function evidence(match) {
    const names = element(
      "dl", {},
      element("dt", {}, "Source"), element("dd", {}, match.source),
      element("dt", {}, "Target"), element("dd", {}, match.target),
    );
    if (match.truth !== null) {
      names.append(
        element("dt", { class: "wrong" }, "Should be"), element("dd", {}, match.truth),
      );
    }
    const sizes = `The source has ${plural(match.ofSource)}, the target ${match.ofTarget}; `;
    if (!match.total) {
      return [names, element("p", {}, `${sizes}none of them are matched to each other.`)];
    }
    const left = match.total - match.supports.length;
    const shown = left ? `, the strongest ${match.supports.length} of them here.` : ".";
    const pairs = match.total === 1 ? "1 pair is" : `${counts.format(match.total)} pairs are`;
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
      element("tbody", {}, ...match.supports.map(supportRow)),
    );
    return [names, element("p", {}, `${sizes}${pairs} matched to each other${shown}`), table];
  }

  function plural(number) {
    return `${counts.format(number)} ${number === 1 ? "neighbor" : "neighbors"}`;
  }

  function supportRow([source, target, confidence, sourceSteps, targetSteps]) {
    const how = confidence === null ? "seed" : percents.format(confidence);
    return element(
      "tr", {},
      neighborCell(source, sourceSteps),
      element("td", { class: "link" }, how),
      neighborCell(target, targetSteps),
    );
  }

  function neighborCell(neighbor, steps) {
    const name = data.names[neighbor];
    const cell = element("td", { title: name }, short(name));
    for (let i = 0; i < steps.length; i += 2) {
      const relation = data.names[steps[i]];
      const outward = steps[i + 1] === 1;
      cell.append(element(
        "span",
        { class: "step", title: relation },
        element("span", { class: "hidden" }, outward ? "outgoing " : "incoming "),
        outward ? `${short(relation)} →` : `← ${short(relation)}`,
      ));
    }
    return cell;
  }

  function sortBy(header) {
    const { key } = header.dataset;
    const number = key === "confidence" || key === "evidence";
    state.falling = state.key === key ? !state.falling : number;
    state.key = key;
    for (const each of document.querySelectorAll("#match-table [aria-sort]")) {
      each.removeAttribute("aria-sort");
    }
    header.setAttribute("aria-sort", state.falling ? "descending" : "ascending");
    find();
  }

  function startTable() {
    document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
    search.addEventListener("input", find);
    if (verdict) verdict.addEventListener("change", find);
    more.addEventListener("click", showMore);
    addEventListener("resize", spanRows);
    for (const header of document.querySelectorAll("#match-table th[data-key]")) {
      header.querySelector("button").addEventListener("click", () => sortBy(header));
    }
    find();
  }

  if (rows) startTable();
  Bokeh.set_log_level("error");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintAll);
  drawCharts();
})();
