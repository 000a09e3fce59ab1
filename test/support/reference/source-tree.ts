import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { parseAst } from 'vitest/node';

/** Source files by their path under src, with `/` as the separator. */
export type Tree = Readonly<Record<string, string>>;

/** A rule about the shape of the source; returns one line for each violation. */
export type Rule = (tree: Tree) => string[];

export type Node = { type: string } & Readonly<Record<string, unknown>>;

/** A syntax node and its place: the parent node and the key in it. */
export type Place = { path: string; folder: string; node: Node; parent: Node; key: string };

/** The target of an import as written; for a file of the tree, its path. */
export type Import = Place & { target: string; isFile: boolean };

export function readTree(): Tree {
  const root = join(import.meta.dirname, '../../../src');
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' });
  const paths = all.filter((path) => /\.tsx?$/.test(path));
  return Object.fromEntries(
    paths.map((path) => [path.replaceAll(sep, '/'), readFileSync(join(root, path), 'utf8')]),
  );
}

/** The layers of the core. A feature has folders of the same names. */
const layers = new Set([
  'domain',
  'service',
  'wire',
  'store',
  'upstream',
  'sync',
  'http',
  'config',
  'daemon',
  'cli',
]);

/**
 * The layer of a file: the folder under src, or under the folder of its feature; '' for files in src itself. What a
 * feature has besides layers is `features/` and its name, and its declaration is `features`.
 */
export function folderOf(path: string): string {
  if (!path.includes('/')) return '';
  const [first = '', feature = '', layer = ''] = path.split('/');
  if (first !== 'features') return first;
  if (layer === 'feature.ts') return 'features';
  return layers.has(layer) ? layer : `features/${feature}`;
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}

/** The syntax nodes of all files, types included. */
export function placesOf(tree: Tree): Place[] {
  return Object.entries(tree).flatMap(([path, text]) => parse(path, text));
}

const parsed = new Map<string, Place[]>();
function parse(path: string, text: string): Place[] {
  const name = `${path}\n${text}`;
  const known = parsed.get(name);
  if (known !== undefined) return known;
  const places = [
    ...nodesOf(path, parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' }) as unknown as Node),
  ];
  parsed.set(name, places);
  return places;
}

function* nodesOf(path: string, parent: Node): Generator<Place> {
  for (const [key, value] of Object.entries(parent)) {
    const nodes = Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : [];
    for (const node of nodes) {
      yield { path, folder: folderOf(path), node, parent, key };
      yield* nodesOf(path, node);
    }
  }
}

/** Every import, re-export, dynamic import and type import, even if its target cannot be read. */
export function importsOf(tree: Tree): Import[] {
  return placesOf(tree).flatMap((place) => {
    const { source, callee, type } = place.node;
    const isRequire = isNode(callee) && callee['name'] === 'require';
    if (!isRequire && (!isNode(source) || !/^(?:Import|Export|TSImport)/.test(type))) return [];
    const written = isNode(source) ? source['value'] : null;
    if (typeof written !== 'string') return [{ ...place, target: 'what cannot be read', isFile: true }];
    const isFile = written.startsWith('.');
    const target = isFile ? posix.join(posix.dirname(place.path), written) : written;
    return [{ ...place, target, isFile }];
  });
}

/** `a` for a name that is read, `a.b` for a member of such a name; null for `x.a` and for `a` as a key. */
export function nameAt({ node, parent, key }: Place): string | null {
  if (node.type === 'MemberExpression') {
    const { object, property } = node;
    return isNode(object) && isNode(property)
      ? `${String(object['name'])}.${String(property['name'])}`
      : null;
  }
  if (node.type !== 'Identifier') return null;
  const isMember =
    parent['computed'] !== true && (key === 'property' || (key === 'key' && parent['shorthand'] !== true));
  return isMember ? null : String(node['name']);
}

/** Whether `Date` is used without reading the clock: as a type, with a given time, or to parse. */
export function isTimeless({ parent, key }: Place): boolean {
  const { type, property, arguments: given } = parent;
  if (type === 'NewExpression' && key === 'callee') return Array.isArray(given) && given.length > 0;
  if (type === 'MemberExpression')
    return isNode(property) && /^(?:parse|UTC)$/.test(String(property['name']));
  return type === 'TSTypeReference';
}
