// Text that the page shows, and text that it does not: hidden, outside, tiny, or in the color of
// the background.
(() => {
  const behind = node => { for (let at = node; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none") return null;
      if (!/^rgba\(.*, 0\)$/.test(style.backgroundColor)) return style.backgroundColor;
    } return "rgb(255, 255, 255)"; };
  const faint = node => { for (let at = node; at; at = at.parentElement)
      if (parseFloat(getComputedStyle(at).opacity) < 0.05) return true; return false; };
  const wide = document.documentElement.scrollWidth, high = document.documentElement.scrollHeight;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const shown = [], found = [];
  while (walker.nextNode() && found.length < 2000) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || !parent || parent.closest("script,style,noscript,template")) continue;
    const range = document.createRange(); range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].map(box => ({left: box.left + scrollX,
      right: box.right + scrollX, top: box.top + scrollY, bottom: box.bottom + scrollY}));
    const style = getComputedStyle(parent);
    const seen = boxes.some(box => box.right > 0 && box.bottom > 0 && box.left < wide
      && box.top < high && box.right > box.left && box.bottom > box.top)
      && style.visibility !== "hidden" && parseFloat(style.fontSize) >= 3 && !faint(parent)
      && style.color !== behind(parent) && !/^rgba\(.*, 0\)$/.test(style.color);
    (seen ? shown : found).push(node.data.trim());
  }
  return JSON.stringify({seen: shown.join(" ").slice(0, 200000),
    unseen: found.join(" ").slice(0, 20000)});
})()
