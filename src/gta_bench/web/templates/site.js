// Sorting, filtering and comparing two rows. Without this script, every page still shows all data.
"use strict";

function valueOf(row, column, kind) {
  const value = row.cells[column].dataset.value;
  if (kind === "text") return value || row.cells[column].textContent;
  return value === "" ? null : Number(value);
}

function compareRows(one, two, column, kind, sign) {
  const [a, b] = [valueOf(one, column, kind), valueOf(two, column, kind)];
  if (a === null || b === null) return (a === null) - (b === null); // missing values come last
  return sign * (kind === "text" ? a.localeCompare(b) : a - b);
}

// Group headings are shown only if the table is sorted by rank.
function showGroups(table) {
  const byRank = table.dataset.order === "rank";
  for (const head of table.querySelectorAll(".group-head")) {
    const rows = table.querySelectorAll(`.row[data-group="${head.dataset.group}"]:not([hidden])`);
    head.hidden = !byRank || rows.length === 0;
  }
}

function sortBy(table, heading) {
  const kind = heading.dataset.sort;
  const column = heading.cellIndex;
  const usual = kind === "number" ? "descending" : "ascending";
  const other = usual === "ascending" ? "descending" : "ascending";
  const direction = heading.getAttribute("aria-sort") === usual && kind !== "rank" ? other : usual;
  for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", direction);
  table.dataset.order = kind;
  const sign = direction === "ascending" ? 1 : -1;
  const rows = [...table.querySelectorAll(".row")];
  rows.sort((one, two) => compareRows(one, two, column, kind, sign));
  const body = table.tBodies[0];
  const heads = new Map([...table.querySelectorAll(".group-head")].map((h) => [h.dataset.group, h]));
  for (const row of rows) {
    const head = heads.get(row.dataset.group);
    if (head) {
      body.append(head);
      heads.delete(row.dataset.group);
    }
    body.append(row);
  }
  showGroups(table);
}

function makeSortable(table) {
  table.dataset.order = "rank";
  for (const heading of table.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading));
    heading.append(button);
    if (heading.dataset.sort === "rank") heading.setAttribute("aria-sort", "ascending");
  }
}

function filterRows(form, tables) {
  const text = form.elements.find.value.trim().toLowerCase();
  const kind = form.elements.kind.value;
  const flagged = form.elements.flagged.checked;
  let [shown, all] = [0, 0];
  for (const table of tables) {
    for (const row of table.querySelectorAll(".row")) {
      const name = row.querySelector("th").dataset.value;
      row.hidden =
        !name.includes(text) ||
        (kind !== "" && row.dataset.kind !== kind) ||
        (flagged && row.dataset.flagged !== "1");
      shown += row.hidden ? 0 : 1;
      all += 1;
    }
    showGroups(table);
  }
  form.querySelector("output").textContent = shown === all ? "" : `${shown} of ${all} rows`;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function scoreTable(entries) {
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  head.append(element("th", "Score", { scope: "col" }));
  for (const entry of entries) {
    head.append(element("th", entry.system, { scope: "col", class: "num" }));
  }
  const body = table.createTBody();
  const labels = new Set(entries.flatMap((entry) => entry.scores.map(([label]) => label)));
  for (const label of labels) {
    const row = body.insertRow();
    row.append(element("th", label, { scope: "row" }));
    for (const entry of entries) {
      const [, text, span] = entry.scores.find((score) => score[0] === label) || ["", "–", ""];
      const cell = element("td", text, { class: "num" });
      if (span) cell.append(element("small", span));
      row.append(cell);
    }
  }
  return table;
}

function showComparison(chosen, pairs, target) {
  const ids = chosen.map((entry) => entry.id);
  const sentence = pairs[ids.join(" ")] || pairs[[...ids].reverse().join(" ")];
  const same = "Choose two different systems.";
  const apart = "These rows are from different tables, so they cannot be compared.";
  const title = chosen.map((entry) => entry.system).join(" and ");
  const text = sentence || (ids[0] === ids[1] ? same : apart);
  target.replaceChildren(element("h2", title), element("p", text), scoreTable(chosen));
  for (const entry of chosen) {
    for (const finding of entry.findings) {
      target.append(element("p", `${entry.system}: ${finding}.`, { class: "bad" }));
    }
  }
  target.hidden = false;
}

function startComparison(form) {
  const data = JSON.parse(document.getElementById("compare-data").textContent);
  const entries = new Map(data.entries.map((entry) => [entry.id, entry]));
  const target = document.getElementById("comparison");
  const { first, second } = form.elements;
  const show = () => {
    showComparison([entries.get(first.value), entries.get(second.value)], data.pairs, target);
  };
  const fromAddress = () => {
    const [one, two] = decodeURIComponent(location.hash.slice(1)).split("+");
    const [best, next] = entries.keys();
    first.value = entries.has(one) ? one : best;
    second.value = entries.has(two) ? two : next || best;
    show();
  };
  form.addEventListener("change", () => {
    history.replaceState(null, "", `#${first.value}+${second.value}`);
    show();
  });
  addEventListener("hashchange", fromAddress);
  form.hidden = false;
  fromAddress();
}

const tables = [...document.querySelectorAll("table.board")];
tables.forEach(makeSortable);
const filters = document.querySelector("form.controls:not(#compare)");
if (filters) {
  filters.hidden = false;
  filters.addEventListener("input", () => filterRows(filters, tables));
  filters.addEventListener("submit", (event) => event.preventDefault());
}
const comparison = document.getElementById("compare");
if (comparison) startComparison(comparison);
