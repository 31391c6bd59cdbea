#!/usr/bin/env node
// Starts the binary that the package of this platform contains, and ends as it ends.
"use strict";

const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "@COMMAND@.exe" : "@COMMAND@";
let binary;
try {
  binary = require.resolve(`@NAME@-${platform}/${file}`);
} catch {
  console.error(`error: the package @NAME@-${platform} with the binary is not installed`);
  console.error("  help: install without --omit=optional; @REPOSITORY@ lists the platforms that have a binary");
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
child.on("error", (error) => {
  console.error(`error: cannot start ${binary}: ${error.code}`);
  process.exit(1);
});
// A terminal sends Ctrl-C to the binary as well, which decides what it means. Other signals reach this process only.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exitCode = code;
  }
});
