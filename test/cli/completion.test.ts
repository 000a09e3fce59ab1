import { expect, test } from 'vitest';
import { latchkey } from '../support/command-line.ts';
import { type Complete, completeInBash, completeInZsh, isInstalled } from '../support/shell-completion.ts';

/** A command line to which words can be added, as the help of the program tells them. */
interface Place {
  readonly line: string;
  readonly members: readonly string[];
  readonly options: readonly string[];
}

async function readHelp(line: string): Promise<readonly Place[]> {
  const { out } = await latchkey(...line.split(' ').slice(1), '--help');
  const sections = new Map(out.split('\n\n').map((text) => [text.split('\n', 1)[0], text]));
  const members = namesIn(sections.get('Commands:'), new RegExp(`^ {2}${line} ([a-z]+)`, 'gm'));
  const options = namesIn(sections.get('Options:'), /^ +(--[a-z-]+) /gm);
  const inner = await Promise.all(members.map((name) => readHelp(`${line} ${name}`)));
  return [{ line, members, options: options.filter(isOffered) }, ...inner.flat()];
}

function namesIn(section: string | undefined, pattern: RegExp): readonly string[] {
  return [...(section ?? '').matchAll(pattern)].map(([, name = '']) => name);
}

/** Of `--version` every help tells, and only the program as a whole means it. */
function isOffered(option: string): boolean {
  return option !== '--version';
}

const shells: readonly (readonly ['bash' | 'zsh', Complete])[] = [
  ['bash', completeInBash],
  ['zsh', completeInZsh],
];

for (const [shell, complete] of shells) {
  const isMissing = !isInstalled(shell);
  const note = isMissing ? ` (skipped: ${shell} is not installed)` : '';

  test.skipIf(isMissing)(`${shell} completes every command and every option${note}`, async () => {
    const { code, out } = await latchkey('completion', shell);
    expect(code).toBe(0);
    const places = await readHelp('latchkey');
    const lines = places.flatMap(({ line }) => [`${line} `, `${line} --`]);
    const expected = places.flatMap(({ members, options }) => [[...members, ...options], options]);
    const offered = await complete(out, lines);
    expect(offered.map((words, index) => [lines[index], words.toSorted()])).toEqual(
      expected.map((words, index) => [lines[index], words.toSorted()]),
    );
  });

  test.skipIf(isMissing)(`${shell} completes what was begun${note}`, async () => {
    const { out } = await latchkey('completion', shell);
    const offered = await complete(out, [
      'latchkey ver',
      'latchkey coupon cr',
      'latchkey status --c',
      'latchkey verify K --j',
      'latchkey service install --u',
      'latchkey sync pa',
    ]);
    expect(offered).toEqual([
      ['verify'],
      ['create'],
      ['--check', '--config'],
      ['--json'],
      ['--user'],
      ['pause'],
    ]);
  });
}

test('another shell is misuse', async () => {
  expect(await latchkey('completion', 'tcsh')).toMatchObject({ code: 2 });
});
