import { type Place, placesOf, type Rule } from './source-tree.ts';

const snakeCase = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$/;
/**
 * Where names of the wire and of files may appear. The command line and pages read JSON and configuration, the
 * log has names like the wire, and the PostgreSQL driver has its own.
 */
const speaksWire =
  /^(?:client|features\/(?:install|sandbox))\/|^(?:features\/\w+\/)?(?:config|cli|daemon|page|wire)\/|\/(?:\w+-)?wire\.ts$|^features\/postgres\/store\/client\.ts$|^http\/entry\/request-log\.ts$/;

const problemTables = new Set(['domain/problem/problem-table.ts', 'domain/problem/server-problems.ts']);

/** States and problem codes are words of the domain, which are spelled as on the wire everywhere. */
export const strayWireNames: Rule = (tree) => {
  const found = placesOf(tree).flatMap((place) => {
    const name = place.node[place.node.type === 'Literal' ? 'value' : 'name'];
    return typeof name === 'string' && snakeCase.test(name) ? [{ ...place, name }] : [];
  });
  const isWord = ({ path, folder, node }: Place): boolean =>
    node.type === 'Literal' ? ['domain', 'service'].includes(folder) : problemTables.has(path);
  const words = new Set(found.filter(isWord).map(({ name }) => name));
  return found
    .filter(({ path, node, name }) => node.type !== 'Literal' && !speaksWire.test(path) && !words.has(name))
    .map(({ path, name }) => `${path} has ${name}`);
};
