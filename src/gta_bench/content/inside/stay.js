// Nobody answers dialogs, and a page that navigates away would never be drawn.
window.alert = () => {}; window.confirm = () => false; window.prompt = () => null;
window.print = () => {};
navigation.addEventListener("navigate", event => {
  const there = event.destination.url.split("#")[0];
  if (there !== location.href.split("#")[0]) event.preventDefault();
});
