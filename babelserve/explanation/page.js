"use strict";
// Lights the counterparts of the word under the pointer, or of the word that arrow keys have come to.
const cardOf = (node) => node.closest(".pair");
const wordsOf = (row) => [...row.querySelectorAll(".w")];

function darken(card) {
  for (const word of card.querySelectorAll(".lit, .here")) word.classList.remove("lit", "here");
}

function light(word) {
  const card = cardOf(word);
  darken(card);
  word.classList.add("lit", "here");
  const other = card.querySelector(word.closest(".source") ? ".target" : ".source");
  const words = wordsOf(other);
  for (const index of (word.dataset.l || "").split(" ").filter(Boolean)) words[index].classList.add("lit");
  card.querySelector(".say").textContent = word.dataset.say;
}

function move(row, step) {
  const words = wordsOf(row);
  if (!words.length) return;
  const last = words.findIndex((word) => word.classList.contains("here"));
  const next = last < 0 ? (step < 0 ? words.length - 1 : 0) : (last + step + words.length) % words.length;
  light(words[next]);
}

document.addEventListener("pointerover", (event) => {
  const word = event.target.closest(".w");
  if (word) light(word);
});
document.addEventListener("focusin", (event) => {
  if (event.target.matches(".words") && !event.target.querySelector(".here")) move(event.target, 1);
});
document.addEventListener("focusout", (event) => {
  if (event.target.matches(".words")) darken(cardOf(event.target));
});
document.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step || !event.target.matches(".words")) return;
  event.preventDefault();
  move(event.target, step);
});
