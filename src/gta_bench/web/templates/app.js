// Keeps a page of the app up to date. Pages also work without it: they are as of when they were loaded.
const live = document.getElementById("live");
const EVERY = 1000; // milliseconds; with half a second on the server, changes show within two seconds
for (const element of document.querySelectorAll("[data-script]")) element.hidden = false;

// Finds rows by their text.
for (const input of document.querySelectorAll("[data-find]")) {
  input.addEventListener("input", () => find(input));
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
}
function find(input) {
  const wanted = input.value.trim().toLowerCase();
  for (const row of document.querySelectorAll(input.dataset.find)) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
}

// Replaces what has changed, and keeps what the user has checked or opened.
function replace(old, fresh) {
  const checked = new Set([...old.querySelectorAll("input:checked")].map((one) => one.value));
  for (const box of fresh.querySelectorAll("input[type=checkbox]")) box.checked = checked.has(box.value);
  old.replaceWith(fresh);
}
function update(page) {
  for (const list of page.querySelectorAll("[data-live-list]")) {
    const own = document.getElementById(list.id);
    if (!own) continue;
    for (const row of [...own.children]) if (!page.getElementById(row.id)) row.remove();
    [...list.children].forEach((row, place) => {
      const known = document.getElementById(row.id);
      if (known && own.contains(known) && own.children[place] === known) return;
      own.insertBefore(known && own.contains(known) ? known : row.cloneNode(true), own.children[place] || null);
    });
  }
  for (const fresh of page.querySelectorAll("[data-live]")) {
    const old = document.getElementById(fresh.id);
    if (old && !old.isEqualNode(fresh) && !old.contains(document.activeElement)) replace(old, fresh.cloneNode(true));
  }
  for (const input of document.querySelectorAll("[data-find]")) find(input);
}
async function look() {
  try {
    const found = await fetch("/version", { cache: "no-store" });
    const { version } = await found.json();
    const waits = "wait" in live.dataset;
    if (String(version) === live.dataset.version && !waits) return;
    const page = await fetch(location.href, { cache: "no-store" });
    if (document.querySelector("[data-reload]")) {
      if (page.status !== 202) location.reload();
      return;
    }
    const text = new DOMParser().parseFromString(await page.text(), "text/html");
    const fresh = text.getElementById("live");
    if (!fresh) return;
    live.dataset.version = fresh.dataset.version;
    if (!("wait" in fresh.dataset)) delete live.dataset.wait;
    update(text);
  } catch {
    // The app was stopped, or the machine sleeps; the next look may work.
  }
}
if (live) {
  const again = async () => {
    if (!document.hidden) await look();
    setTimeout(again, EVERY);
  };
  setTimeout(again, EVERY);
}
