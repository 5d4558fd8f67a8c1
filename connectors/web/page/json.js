// JSON as text, laid out anew without being read: numbers of any size, and the order of members, stay as they are written.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

// compact is JSON on one line.
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
