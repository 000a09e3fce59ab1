import { type Fault, formatKey, formatReason, type KeyPath } from './fault.ts';
import { mask } from './secret.ts';
import type { Raw } from './source.ts';
import { isTree, listOf, type Tree } from './tree.ts';
import { isCredential } from './value.ts';

/**
 * Puts the content of `…_file` keys where the secret itself would stand (second step of three).
 *
 * A trailing newline is not part of the secret. It comes before the types are looked at, so that
 * an unreadable file and a typing error are told in one go; after a fault a mask stands in.
 */
export function readSecretFiles(
  raw: Raw,
  readFile: (path: string) => string,
): { readonly tree: Tree; readonly files: readonly string[]; readonly faults: readonly Fault[] } {
  const files: string[] = [];
  const faults: Fault[] = [];

  function open(value: unknown, name: string, at: KeyPath): unknown {
    if (!isTree(value)) return value;
    const fileKey = `${name}_file`;
    const path = value[fileKey] ?? undefined;
    if (path === undefined) return value;
    const read = readSecret(value[name] ?? undefined, path, name);
    if ('fault' in read) {
      const key = [...at, fileKey];
      faults.push({ key: formatKey(key), text: read.fault, origin: raw.originOf(key) });
    }
    return { ...value, [name]: 'secret' in read ? read.secret : mask };
  }

  function readSecret(given: unknown, path: unknown, name: string): { secret: string } | { fault: string } {
    if (given !== undefined) return { fault: `is given beside ${name}: take one of them out` };
    if (typeof path !== 'string') return { fault: 'must be a path' };
    try {
      const secret = readFile(path).replace(/[\r\n]+$/, '');
      files.push(path);
      if (secret === '') return { fault: `${path} is empty` };
      return isCredential(secret) ? { secret } : { fault: `${path} must hold one line of visible ASCII` };
    } catch (error) {
      return { fault: `cannot read ${path}: ${formatReason(error)}` };
    }
  }

  const { upstream, products } = raw.tree;
  const tree = {
    ...raw.tree,
    upstream: open(upstream, 'api_key', ['upstream']),
    products: listOf(products)?.map((item, index) => open(item, 'secret', ['products', index])) ?? products,
  };
  return { tree, files, faults };
}
