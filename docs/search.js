// The search of the site reads a minus before a word as "without this word". The option --max-document is looked up as
// "+max document": pages with the word max, those with document first. "-word" still excludes a word.
// Words that the index does not contain, such as "if" and "other", must not be required.
"use strict"

const send = Worker.prototype.postMessage
Worker.prototype.postMessage = function (message, ...others) {
  if (message && typeof message.data === "string") {
    const option = (_, before, name) => before + name.replace(/\b(?!other\b)(\w{3,})-(?=\w)/g, "+$1 ")
    message = { ...message, data: message.data.replace(/(^|\s)--([\w-]+)/g, option) }
  }
  return send.call(this, message, ...others)
}
