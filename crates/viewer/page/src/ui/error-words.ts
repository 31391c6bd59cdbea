// Words of errors for people: the help of the server is written for programs and the command line.
import type { ApiError } from "../api/request";

export interface ErrorWords {
  message: string;
  /** What to do next. */
  help: string | null;
}

/** Help by error code; null shows none. Codes without an entry keep the help of the server. */
const HELP: Record<string, string | null> = {
  "request-invalid": null,
  "name-not-found": "It may have been renamed or removed. Choose another one from the list.",
  "file-changed": "Reload the model to see its present state.",
  "codec-missing": "Its name, shape and bytes can be shown, but not its weights.",
  "shapes-differ": "Only tensors of the same shape can be compared.",
  "edit-refused": "Correct the value, or undo the change.",
  "server-gone": "Start gguf view again and open the address that it prints.",
  environment: "Check that the file and its folder can be read and written, then try again.",
  truncated: "Download or copy the file again.",
  "template-syntax": "Correct the marked line of the template.",
  "template-render": "Correct the marked line of the template, or change the messages.",
  "template-refused": "The template refuses this conversation: change the messages.",
  "template-limit": "The template takes too long or writes too much: correct it, or shorten the messages.",
  "architecture-unknown": "Only the graph is missing: metadata, tensors and map show the whole file.",
  page: "Reload the page.",
};

/** Messages by error code that replace those of the server. */
const MESSAGE: Record<string, string> = {
  "server-gone": "The server has stopped or cannot be reached.",
  "architecture-unknown": "There is no computation graph of this architecture.",
};

/** Returns the message and the help of an error. */
export function wordsOf(failure: ApiError): ErrorWords {
  const known = Object.hasOwn(HELP, failure.code);
  const help = known ? (HELP[failure.code] ?? null) : failure.help;
  return {
    message: sentence(MESSAGE[failure.code] ?? failure.message),
    // A command of the terminal does not help on the page.
    help: help !== null && !known && /`?gguf |--\w/.test(help) ? null : help,
  };
}

/** Begins a message with a capital letter, unless it begins with a name. */
function sentence(text: string): string {
  const first = text.split(/\s/, 1)[0] ?? "";
  return /^[a-z]+,?$/.test(first) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
