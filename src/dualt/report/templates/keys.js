// A key that is the name of a class chooses that class, and nothing else; a command whose key is taken moves to another.
const COMMANDS = { next: ["j", "ArrowDown"], previous: ["k", "ArrowUp"], take: ["a", "+"], keep: ["x", "="], undo: ["u", "Backspace"], find: ["/", "F2"] };

const keyNames = new Map();
page.names.forEach((text, code) => { if ([...text].length === 1 && text.trim()) keyNames.set(text, code); });
for (const [text, code] of [...keyNames]) {
  for (const other of [text.toLowerCase(), text.toUpperCase()]) if (!keyNames.has(other)) keyNames.set(other, code);
}
const digitsAreNames = [..."0123456789"].some((digit) => keyNames.has(digit));

const keyFor = (command) => COMMANDS[command].find((pressed) => !keyNames.has(pressed)) ?? "";
const commandAt = new Map(Object.keys(COMMANDS).map((command) => [keyFor(command), command]));

// Other classes answer to their place among the buttons, unless digits are names.
const keyOf = (code, place) => {
  if (keyNames.get(page.names[code]) === code) return page.names[code];
  return digitsAreNames || place > 9 ? null : String((place + 1) % 10);
};
