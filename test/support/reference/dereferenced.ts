/**
 * An OpenAPI document in which each `$ref` is replaced by its target; circular references are not supported.
 */
export function dereferenced(document: unknown): unknown {
  const resolve = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(resolve);
    if (typeof node !== 'object' || node === null) return node;
    if ('$ref' in node) return resolve(named(document, String(node.$ref)));
    return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, resolve(value)]));
  };
  return resolve(document);
}

function named(document: unknown, reference: string): unknown {
  const path = reference.split('/').slice(1);
  return path.reduce((node, name) => (node as Record<string, unknown>)[name], document);
}
