// Columns of numbers as report/picture/pack.py writes them: planes of equal significance, zigzagged, compressed, in base64.

async function unpack({ count, planes, steps, data }) {
  const numbers = new Float64Array(count);
  if (planes === 0 || count === 0) return numbers;
  const stream = new Blob([fromBase64(data)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const cut = new Uint8Array(await new Response(stream).arrayBuffer());
  for (let plane = 0, weight = 1; plane < planes; plane += 1, weight *= 256) {
    const from = plane * count;
    for (let i = 0; i < count; i += 1) numbers[i] += weight * cut[from + i];
  }
  let before = 0;
  for (let i = 0; i < count; i += 1) {
    const number = cut[i] & 1 ? -(numbers[i] + 1) / 2 : numbers[i] / 2;
    before = steps ? before + number : number;
    numbers[i] = before;
  }
  return numbers;
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const found = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) found[i] = letters.charCodeAt(i);
  return found;
}

/** The columns of a table. */
async function unpackAll(table) {
  const columns = await Promise.all(Object.values(table).map(unpack));
  return Object.fromEntries(Object.keys(table).map((name, i) => [name, columns[i]]));
}
