import { expect, it } from 'vitest';
import { importsOf, readTree, type Tree } from '../../support/reference/source-tree.ts';

/** What these files load before anything runs: files and modules, without types and dynamic imports. */
function loadedBy(tree: Tree, starts: readonly string[]): Set<string> {
  const loads = importsOf(tree).filter(
    ({ node }) => /^(?:Import|Export)\w*Declaration$/.test(node.type) && !isOfTypesOnly(node),
  );
  const targets = Map.groupBy(loads, ({ path }) => path);
  const loaded = new Set<string>();
  const waiting = [...starts];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (loaded.has(path)) continue;
    loaded.add(path);
    waiting.push(...(targets.get(path) ?? []).map(({ target }) => target));
  }
  return loaded;
}

function isOfTypesOnly(node: Readonly<Record<string, unknown>>): boolean {
  return node['importKind'] === 'type' || node['exportKind'] === 'type';
}

/** What a start loads, statically or by a dynamic import. */
const starts = [
  'cli/main.ts',
  'cli/commands/serve.ts',
  'daemon/serve.ts',
  'daemon/start.ts',
  'daemon/compose.ts',
  'daemon/role/agent.ts',
  'daemon/threads/writer-worker.ts',
  ...['config/leases', 'daemon/process', 'store/tables', 'service/use-cases', 'wire/checks'].map(
    (name) => `features/leases/${name}.ts`,
  ),
  ...['activation', 'agent-lease', 'lease'].map((name) => `features/leases/http/${name}.ts`),
];

it('a start of a daemon without leases loads neither jose nor the documents and keys of leases', () => {
  const loaded = loadedBy(readTree(), starts);
  // The start itself is found: otherwise this test could not fail.
  expect(loaded).toContain('http/server.ts');
  expect(loaded).toContain('features/leases/daemon/lease-issuer.ts');
  const early = [...loaded].filter(
    (target) =>
      target === 'jose' ||
      /^features\/leases\/(?:documents|signing-keys|signing-files|issuer)\.ts$/.test(target),
  );
  expect(early).toEqual([]);
});

it('the commands for signing keys are described without loading jose', () => {
  const commands = Object.keys(readTree()).filter((path) => path.startsWith('features/leases/cli/'));
  expect(commands.length).toBeGreaterThan(3);
  expect(loadedBy(readTree(), commands)).not.toContain('jose');
});

it('a static import of jose anywhere below the start is found', () => {
  const tree = {
    'daemon/start.ts': "import { a } from '../lease/a.ts'; import type { B } from '../lease/b.ts';",
    'lease/a.ts': "export { c } from './c.ts'; const d = await import('./d.ts');",
    'lease/c.ts': "import { CompactSign } from 'jose';",
  };
  expect([...loadedBy(tree, ['daemon/start.ts'])].toSorted()).toEqual([
    'daemon/start.ts',
    'jose',
    'lease/a.ts',
    'lease/c.ts',
  ]);
});
