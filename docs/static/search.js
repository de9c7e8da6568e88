/* What a search shows of a page: its text, without the buttons, the contents and the code around it. */
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const whole = Search.htmlToText;
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    const article = page.querySelector("article.bd-article");
    if (!article) return whole(text, anchor);
    article.querySelectorAll(".headerlink, .cell_input, script, style, nav").forEach((part) => part.remove());
    const place = anchor && page.getElementById(decodeURIComponent(anchor.replace(/^#/, "")));
    return (place && article.contains(place) ? place : article).textContent;
  };
});
