// Keyboard shortcuts of the label page. It also works without this script, with Tab, arrows and Enter.
const form = document.getElementById("label");
let one = -Infinity; // when 1 was pressed; a 0 soon after it means 10
if (form) {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      form.requestSubmit();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (/^[0-9]$/.test(event.key)) {
      const ten = event.key === "0" && event.timeStamp - one < 1000;
      one = event.key === "1" ? event.timeStamp : -Infinity;
      const chosen = form.querySelector(`input[value="${ten ? 10 : event.key}"]`);
      chosen.checked = true;
      chosen.focus();
    } else if (event.key === "r" || event.key === "R") {
      event.preventDefault();
      document.getElementById("reason").focus();
    } else if (event.key === "[" || event.key === "]") {
      const link = document.querySelector(event.key === "[" ? "a[rel=prev]" : "a[rel=next]");
      if (link) link.click();
    }
  });
}
