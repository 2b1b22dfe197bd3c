// Filters, sorts and pages the lists of tasks. Everything that it shows comes from the page itself.
"use strict";
const ROWS = 50;
const element = (name, css, text) => {
  const made = document.createElement(name);
  if (css) made.className = css;
  if (text) made.textContent = text;
  return made;
};
// A row of the data that has no element yet, with the same structure as the others.
function build(data, row) {
  const [task, epoch, state, score, strip, causes, work] = row;
  const [name, title, kind] = data.tasks[task];
  const made = element("div", "task-bare");
  made.append(element("span", `pill ${data.states[state]}`, score));
  const line = element("span", "line");
  line.append(element("b", "", epoch === 1 ? name : `${name}, epoch ${epoch}`), ` ${title}`);
  const about = element("span", "title");
  about.append(line, element("small", "", kind));
  const outcome = element("span");
  outcome.append(element("small", "", strip));
  const dots = element("span", "causes");
  for (let at = 0; at < causes.length; at += 2) {
    const cause = data.causes[causes[at]];
    dots.append(element("span", `cause-dot cause-${cause.replaceAll(" ", "-")}`, `${cause} ${causes[at + 1]}`));
  }
  made.append(about, outcome, dots, element("span", "", work));
  return made;
}
function start(list) {
  const form = list.querySelector("form");
  const rows = list.querySelector(".rows");
  const pager = list.querySelector(".pager");
  const packed = list.querySelector("script.packed");
  const items = [...rows.querySelectorAll(":scope > .task, :scope > .task-bare")].map((node) => ({
    node,
    state: node.dataset.state,
    causes: node.dataset.causes.split("|"),
    kind: node.dataset.kind,
    name: node.querySelector(".title b").textContent,
    text: node.querySelector(".title").textContent.toLowerCase(),
  }));
  if (packed) {
    const data = JSON.parse(packed.textContent);
    for (const row of data.rows) {
      const [name, title, kind] = data.tasks[row[0]];
      items.push({
        make: () => build(data, row),
        state: data.states[row[2]],
        causes: row[5].filter((_, at) => at % 2 === 0).map((at) => data.causes[at]),
        kind, name, text: `${name} ${title} ${kind}`.toLowerCase(),
      });
    }
  }
  items.forEach((item, at) => { item.at = at; });
  let state = "", page = 0;
  const orders = {
    "": (a, b) => a.at - b.at,
    best: (a, b) => b.at - a.at,
    name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }),
  };
  function show() {
    const find = form.find.value.trim().toLowerCase();
    const cause = form.cause.value, kind = form.kind.value;
    const found = items.filter((item) => (!state || item.state === state)
      && (!cause || item.causes.includes(cause)) && (!kind || item.kind === kind)
      && (!find || item.text.includes(find))).sort(orders[form.sort.value]);
    const pages = Math.max(1, Math.ceil(found.length / ROWS));
    page = Math.min(Math.max(page, 0), pages - 1);
    const seen = found.slice(page * ROWS, (page + 1) * ROWS);
    for (const item of items) if (item.node) item.node.hidden = true;
    for (const item of seen) {
      item.node ??= item.make();
      item.node.hidden = false;
      rows.append(item.node);
    }
    form.querySelector("output").textContent = `${found.length.toLocaleString("en")} of ${items.length.toLocaleString("en")} rows`;
    pager.hidden = pages < 2;
    pager.querySelector("span").textContent = `Page ${page + 1} of ${pages}`;
    const [back, next] = pager.querySelectorAll("button");
    back.disabled = page === 0;
    next.disabled = page === pages - 1;
  }
  function press(wanted) {
    state = wanted;
    for (const chip of form.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", String(chip.dataset.state === state));
  }
  const again = () => { page = 0; show(); };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", again);
  form.addEventListener("click", (event) => {
    const chip = event.target.closest(".chip");
    if (chip) { press(chip.dataset.state); again(); }
  });
  pager.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    page += Number(button.dataset.page);
    show();
    list.scrollIntoView();
  });
  form.hidden = false;
  show();
  return {
    list,
    filter(cause) { form.find.value = ""; form.kind.value = ""; press(""); form.cause.value = cause; again(); },
    // A task on another page, or one that a filter hides, is shown before the browser goes there.
    reveal(node) {
      const item = items.find((one) => one.node && one.node.contains(node));
      if (!item) return;
      if (item.node.hidden) {
        form.reset(); press("");
        page = Math.floor(item.at / ROWS);
        show();
      }
      item.node.open = true;
      node.scrollIntoView();
    },
  };
}
const lists = [...document.querySelectorAll(".task-list")].map(start);
document.addEventListener("click", (event) => {
  const card = event.target.closest("a[data-cause]");
  if (!card) return;
  const own = lists.find((one) => `#${one.list.id}` === card.getAttribute("href"));
  if (own) own.filter(card.dataset.cause);
});
function go() {
  const wanted = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const own = wanted && lists.find((one) => one.list !== wanted && one.list.contains(wanted));
  if (own) own.reveal(wanted);
}
addEventListener("hashchange", go);
go();
