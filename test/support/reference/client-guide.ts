import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '../../..');
export const clientGuide: string = readFileSync(join(root, 'examples/guides/client.md'), 'utf8');
const matches = [...clientGuide.matchAll(/^## (.+)$|^```ts\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```/gm)];

export interface GuideProgram {
  readonly heading: string;
  /** The program, which imports the sources of this repository instead of the package. */
  readonly source: string;
  /** The output of the program according to the guide. */
  readonly output: string;
}

/** The programs of `examples/guides/client.md`. */
export const guidePrograms: readonly GuideProgram[] = matches.flatMap(([, , source, output], index) => {
  if (source === undefined || output === undefined) return [];
  const headings = matches.slice(0, index).map(([, heading]) => heading);
  const heading = headings.findLast((each) => each !== undefined) ?? '';
  return [
    {
      heading,
      source: importSources(source),
      output,
    },
  ];
});

/** Lets a program import the sources of this repository in place of the package. */
export function importSources(program: string): string {
  return program.replaceAll(/latchkey\/(\w+)/g, (_, entry: string) => sourceFile(entry));
}

function sourceFile(entry: string): string {
  return pathToFileURL(join(root, 'src', entry === 'client' ? 'client/index.ts' : `${entry}.ts`)).href;
}
