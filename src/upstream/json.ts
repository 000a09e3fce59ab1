/** What a body turned out to say: the value, or what is wrong with it. */
export type Parsed<Value> = { value: Value } | { fault: string };

export type JsonObject = Readonly<Record<string, unknown>>;

/** Reads a body that must be a JSON object. */
export function readObject(text: string): Parsed<JsonObject> {
  if (text.trim() === '') return { fault: 'the answer is empty' };
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? { value } : { fault: 'the answer is not a JSON object' };
  } catch {
    return {
      fault: isHtml(text) ? 'the answer is HTML, not JSON: a firewall or proxy?' : 'the answer is not JSON',
    };
  }
}

/** Whether a body is a page for people. */
export function isHtml(text: string): boolean {
  return /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(text);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
