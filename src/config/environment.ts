import type { ConfigError, KeyPath } from './errors.ts';
import { overlay } from './file/tree.ts';
import { parseYaml } from './file/yaml.ts';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The values given by `LATCHKEY_…` variables. */
export interface EnvironmentValues {
  readonly tree: unknown;
  readonly errors: readonly ConfigError[];
  readonly originOf: (path: KeyPath) => string;
}

interface Variable {
  readonly name: string;
  readonly path: readonly string[];
}

const prefix = 'LATCHKEY_';

/** Variables that are no settings: the name of the file, and what commands and the client library read. */
const others = new Set(['LATCHKEY_CONFIG', 'LATCHKEY_TOKEN', 'LATCHKEY_TOKEN_FILE', 'LATCHKEY_URL']);

/** Kubernetes sets these in every container if a Service is called `latchkey`. */
const kubernetes =
  /^LATCHKEY_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?|PORT=\w+:\/\/.*)(=|$)/;

/**
 * Reads `LATCHKEY_<PATH>` variables, with `__` between levels; an item of a list has its position as a level.
 *
 * A value is text, except for `true`, `false`, and `null` or an empty value (not given). A value that begins with a
 * bracket, a brace or a quotation mark is YAML.
 */
export function readEnvironment(environment: Environment): EnvironmentValues {
  const variables: Variable[] = [];
  const errors: ConfigError[] = [];
  let tree: unknown = {};
  const ours = Object.entries(environment).filter(([name]) => name.startsWith(prefix) && !others.has(name));
  for (const [name, text] of ours.sort(byName)) {
    if (text === undefined) continue;
    if (kubernetes.test(`${name}=${text}`)) continue;
    const path = name.slice(prefix.length).toLowerCase().split('__');
    const read = readValue(text);
    if ('error' in read) {
      errors.push({ key: path.join('.'), text: read.error, origin: `environment ${name}` });
      continue;
    }
    variables.push({ name, path });
    tree = overlay(
      tree,
      path.reduceRight<unknown>((value, step) => ({ [step]: value }), read.value),
    );
  }
  return { tree, errors, originOf: (path) => `environment ${nameOf(variables, path)}` };
}

function readValue(text: string): { readonly value: unknown } | { readonly error: string } {
  const plain = text.trim();
  if (plain === '' || plain === 'null' || plain === '~') return { value: null };
  if (plain === 'true' || plain === 'false') return { value: plain === 'true' };
  if (!/^[[{"']/.test(plain)) return { value: plain };
  const yaml = parseYaml(plain);
  return 'value' in yaml ? { value: yaml.value } : { error: yaml[0]?.text ?? 'is not valid YAML' };
}

/** Names the variable that sets a path, or a part of it. */
function nameOf(variables: readonly Variable[], path: KeyPath): string {
  const near = variables.filter((variable) =>
    variable.path.every((step, index) => index >= path.length || step === String(path[index])),
  );
  return near.at(-1)?.name ?? prefix;
}

function byName([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return left.localeCompare(right, 'en', { numeric: true });
}
