// JSON without rounded numbers: read, or as text, laid out anew without being read.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

// read is JSON.parse, but an integer that a Number would round becomes a text of its digits. Browsers that do not know how a
// number is written round it.
export function read(text) {
  return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_, value, written) {
  return Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(written?.source) ? written.source : value;
}

// compact is JSON on one line: numbers and the order of members stay as they are written.
export function compact(text) {
  return (text.match(TOKEN) ?? []).join('');
}

// pretty is JSON with each member and each entry on a line.
export function pretty(text) {
  const tokens = text.match(TOKEN) ?? [];
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  const laid = (token, i) => {
    if (token === '{' || token === '[') {
      if (/[}\]]/.test(tokens[i + 1])) return token;
      depth++;
      return token + line();
    }
    if (token === '}' || token === ']') {
      if (/^[{[]$/.test(tokens[i - 1])) return token;
      depth--;
      return line() + token;
    }
    return { ',': token + line(), ':': ': ' }[token] ?? token;
  };
  return tokens.map(laid).join('');
}
