"use strict";
// Links: names, labels, confidence and verdicts of many links, to search and to sort.
const Links = (() => {
  const OWN_NAMESPACE = /^urn:clusterea:(?:source|target):/;

  // Decodes percent-encoded UTF-8; leaves other bytes encoded.
  function decoded(text) {
    return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
      try {
        return decodeURIComponent(run);
      } catch {
        return run;
      }
    });
  }

  // The last part of an IRI, which people recognize.
  function short(name) {
    if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(name)) return name;
    const last = name.replace(/[/#]+$/, "").split(/[/#]/).pop();
    return last ? decoded(last) : name;
  }

  function lineStarts(text, number) {
    const starts = new Uint32Array(number + 1);
    for (let row = 1; row < number; row++) starts[row] = text.indexOf("\n", starts[row - 1]) + 1;
    starts[number] = text.length + 1; // as if a line end were there
    return starts;
  }

  // Calls visit(line) for each line that has the word, once.
  function eachLineWith(word, text, starts, visit) {
    let line = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, starts[line])) {
      while (starts[line + 1] <= at) line++;
      visit(line);
      line++;
      if (line === starts.length - 1) return;
    }
  }

  return class {
    // text: one link per line, with tabs between source and target and their labels, if there are
    // any. confidence: in steps.
    constructor(text, confidence, verdicts) {
      this.length = confidence.length;
      this.confidence = confidence;
      this.verdicts = verdicts;
      this._text = text;
      this._starts = lineStarts(text, this.length);
      this._searched = this._searchText();
      this._searchedStarts = lineStarts(this._searched, this.length);
      this._ranks = new Map();
    }

    static short = short;

    // Reads what link_index.py packs: base64 of gzip.
    static async unpack(packed, number) {
      const letters = atob(packed);
      const compressed = new Uint8Array(letters.length);
      for (let i = 0; i < letters.length; i++) compressed[i] = letters.charCodeAt(i);
      const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
      const bytes = await new Response(stream).arrayBuffer();
      return new this(
        new TextDecoder().decode(new Uint8Array(bytes, 3 * number)),
        new Uint16Array(bytes, 0, number),
        new Int8Array(bytes, 2 * number, number),
      );
    }

    names(row) {
      const [source, target] = this._cells(row).map((cell) =>
        OWN_NAMESPACE.test(cell) ? decoded(cell.replace(OWN_NAMESPACE, "")) : cell);
      return { source, target };
    }

    // Those of source and target; undefined or empty where there is none.
    labels(row) {
      const [, , source, target] = this._cells(row);
      return { source, target };
    }

    _cells(row) {
      return this._text.slice(this._starts[row], this._starts[row + 1] - 1).split("\t");
    }

    // The rows that have every word and the verdict (any, if null), in the given order.
    find(words, verdict, order) {
      const text = this._searched;
      const starts = this._searchedStarts;
      const [first, ...others] = [...words].sort((a, b) => b.length - a.length);
      const fits = new Uint8Array(this.length);
      if (first === undefined) fits.fill(1);
      else eachLineWith(first, text, starts, (row) => { fits[row] = 1; });
      for (const word of others) {
        for (let row = 0; row < this.length; row++) {
          if (fits[row] && !text.slice(starts[row], starts[row + 1]).includes(word)) fits[row] = 0;
        }
      }
      return order.filter((row) => fits[row] && (verdict ?? this.verdicts[row]) === this.verdicts[row]);
    }

    // All rows sorted by key; ties by row, negative keys last.
    order(keys, falling) {
      const { length } = this;
      const most = keys.reduce((a, b) => Math.max(a, b), 0);
      const places = new Float64Array(length);
      for (let row = 0; row < length; row++) {
        const key = keys[row];
        // Key and row in one number, which sorts faster than pairs do.
        places[row] = (key < 0 ? most + 1 : falling ? most - key : key) * length + row;
      }
      return new Uint32Array(places.sort().map((place) => place % length));
    }

    // The rank of each row's source or target by its label or short name; equal ones are equal.
    ranks(side) {
      if (!this._ranks.has(side)) {
        const names = Array.from({ length: this.length }, (_, row) =>
          (this.labels(row)[side] || short(this.names(row)[side])).toLowerCase());
        const rows = Array.from(names.keys());
        rows.sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0));
        const ranks = new Uint32Array(this.length);
        for (let i = 1; i < rows.length; i++) {
          ranks[rows[i]] = ranks[rows[i - 1]] + (names[rows[i]] === names[rows[i - 1]] ? 0 : 1);
        }
        this._ranks.set(side, ranks);
      }
      return this._ranks.get(side);
    }

    // The text in lower case; a line with percent signs has its names a second time, decoded.
    _searchText() {
      const parts = [];
      let end = 0;
      eachLineWith("%", this._text, this._starts, (row) => {
        const line = this._text.slice(this._starts[row], this._starts[row + 1] - 1);
        parts.push(this._text.slice(end, this._starts[row + 1] - 1));
        parts.push("\t", decoded(line).replaceAll("\n", " "));
        end = this._starts[row + 1] - 1;
      });
      parts.push(this._text.slice(end));
      return parts.join("").toLowerCase();
    }
  };
})();
