import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import {
  operationStates,
  type OperationProgress,
  type OperationState,
  nextProgress,
  operationTransitions,
  type OperationEvent,
  type OperationEventType,
} from '../src/domain/outbox/operation.ts';
import { tracePoints } from '../src/domain/outbox/trace.ts';

const repository = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(repository, path), 'utf8');

/** The files of a folder, and of those in it, that end so. */
function filesIn(folder: string, ending: RegExp): string[] {
  const names = readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => ending.test(name)).map((name) => join(folder, name));
}

const books = filesIn('src', /\.md$/);

function headingsOf(book: string): Set<string> {
  return new Set([...book.matchAll(/^##+ (.+)$/gm)].map(([, heading = '']) => heading));
}

/** What stands under a heading of a book. */
function section(book: string, heading: string): string {
  const [, text] = read(book).split(`\n## ${heading}\n`);
  if (text === undefined) throw new Error(`there is no heading ${heading} in ${book}`);
  return text.split('\n## ', 1)[0] ?? '';
}

/** The rows of the table whose first column has this head, the head first, as cells without back quotes. */
function table(text: string, head: string): string[][] {
  const rows = text.split('\n').map((line) => (line.startsWith('|') ? cellsOf(line) : null));
  const start = rows.findIndex((row) => row?.[0] === head);
  if (start < 0) throw new Error(`there is no table of ${head}`);
  const end = rows.findIndex((row, index) => index > start && row === null);
  return rows.slice(start, end).filter((row) => row !== null && !row[0]?.startsWith('--')) as string[][];
}

function cellsOf(line: string): string[] {
  return line.split(' | ').map((cell) => cell.replaceAll(/[|`]/g, '').trim());
}

const sources = [...filesIn('src', /\.(?:ts|md)$/), ...filesIn('test', /\.ts$/)];

it('a comment that cites a reference names an existing page and heading', () => {
  const cited = sources.flatMap((path) => {
    const text = read(path).replaceAll(/\s*\n\s*(?:\*|\/\/) ?/g, ' ');
    const citations = text.matchAll(/(src\/(?:[a-z]+\/)*[A-Z-]+\.md), (?=[A-Za-z_])([^).;:|]*)/g);
    return [...citations].map(([, book = '', headings = '']) => ({
      path,
      book,
      headings: headings.trim(),
    }));
  });
  expect(cited.length).toBeGreaterThan(40);
  const wrong = cited.filter(({ book, headings }) => {
    if (!existsSync(join(repository, book))) return true;
    const known = headingsOf(read(book));
    return !known.has(headings) && !headings.split(/, | and /).every((heading) => known.has(heading));
  });
  expect(wrong).toEqual([]);
});

it('no file cites a page that is not in the repository', () => {
  const elsewhere = /(?:design|contract)(?:\.md)?,? (?:in )?sections? \d|\b(?:sync|contract|house)\.md/;
  const found = sources.filter((path) => elsewhere.test(read(path)));
  expect(found).toEqual([]);
  const missing = sources.flatMap((path) =>
    [...read(path).matchAll(/\bsrc\/(?:[a-z-]+\/)*[A-Z-]+\.md\b/g)]
      .filter(([page]) => !existsSync(join(repository, page)))
      .map(([page]) => [path, page]),
  );
  expect(missing).toEqual([]);
});

it('every path that a reference names exists', () => {
  const syncBooks = books.filter((path) => dirname(path) === 'src/sync');
  const named = ['src/README.md', ...syncBooks, 'src/http/README.md', 'README.md'].flatMap((book) =>
    [...read(book).matchAll(/`([a-z][\w.-]*(?:\/[\w.*-]+)*(?:\/|\.(?:ts|md|yaml)))`/g)]
      .map(([, path = '']) => path)
      .filter((path) => path.includes('/'))
      .map((path) => ({ book, path })),
  );
  expect(named.length).toBeGreaterThan(40);
  const missing = named.filter(({ book, path }) =>
    ['', 'src', dirname(book)].every((folder) => !existsSync(join(repository, folder, path))),
  );
  expect(missing).toEqual([]);
});

it('the architecture page names every folder of src and is short', () => {
  const map = read('src/README.md');
  const folders = readdirSync(join(repository, 'src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  expect(folders.filter((name) => !map.includes(`\n- \`${name}/\``))).toEqual([]);
  expect(map.split('\n').length).toBeLessThanOrEqual(120);
});

it('the architecture page names every reference', () => {
  const map = read('src/README.md');
  for (const book of books.filter((path) => path !== 'src/README.md')) {
    expect(map).toContain(book.replace(/^src\//, ''));
  }
});

const promise = 'src/sync/README.md';
const limits = 'src/sync/LIMITS.md';
const states = section(promise, 'Operation states');

it('the sync reference explains every operation state, and no other', () => {
  expect(listed(states)).toEqual([...operationStates]);
});

it('the sync reference has exactly the transitions of the code', () => {
  const real = Object.keys(operationTransitions.pending).flatMap((event) =>
    operationStates.flatMap((state) =>
      destinations(state, event as OperationEventType).map((to) => `${event}: ${state} → ${to}`),
    ),
  );
  expect(transitionsIn(states).toSorted()).toEqual(real.toSorted());
});

/** The names that the list items of a section explain, such as "- `retried`, `dropped`: a person decided." */
function listed(text: string): string[] {
  const items = text.matchAll(/^- ((?:`[a-z_]+`(?:, )?)+):/gm);
  return [...items].flatMap(([, names = '']) => names.split(', ').map((name) => name.replaceAll('`', '')));
}

/** The lines "event  from, from → to, to (note)" of the code block, one transition each. */
function transitionsIn(text: string): string[] {
  const [, block = ''] = /```text\n([\s\S]*?)```/.exec(text) ?? [];
  return block
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [, event = '', from = '', to = ''] =
        /^(\w+) +([\w, ]+) → ([\w, ]*\w)(?: \(.+\))?$/.exec(line) ?? [];
      return from
        .split(', ')
        .flatMap((state) => to.split(', ').map((next) => `${event}: ${state} → ${next}`));
    });
}

/** Where an event leads from a state, whatever else is so. */
function destinations(state: OperationState, type: OperationEventType): string[] {
  const rest = { held: false, baseUses: 1, sentAt: 1, finishedAt: 1 };
  const progresses: object[] = [true, false].flatMap((maybeApplied) =>
    ['refused', 'missing'].flatMap((cause) =>
      [true, false].map((unanswered) => ({ state, maybeApplied, unanswered, cause, ...rest })),
    ),
  );
  const events: object[] = ['applied', 'refused', 'not_seen'].flatMap((was) =>
    [true, false].map((certain) => ({ type, certain, was, at: 1, cause: 'refused' })),
  );
  const reached = progresses.flatMap((progress) =>
    events.flatMap(
      (event) => nextProgress(progress as OperationProgress, event as OperationEvent)?.state ?? [],
    ),
  );
  return [...new Set(reached)].toSorted();
}

it('every invariant of the sync reference names tests that exist', () => {
  const invariants = section(limits, 'Invariants')
    .split(/^(?=\d+\. )/m)
    .slice(1);
  expect(invariants.length).toBeGreaterThan(7);
  for (const invariant of invariants) {
    const [, enforced = ''] = /^ +- Enforced by: (.+)\.$/m.exec(invariant) ?? [];
    expect(enforced, invariant).not.toBe('');
    for (const named of enforced.split('; ')) {
      const [, path = '', title = ''] = /^`(test\/[^`]+)` "([^"]+)"$/.exec(named) ?? [];
      const isThere = path !== '' && existsSync(join(repository, path)) && isTitleIn(read(path), title);
      expect([named, isThere]).toEqual([named, true]);
    }
  }
});

it('every known gap of the sync reference belongs to an invariant', () => {
  const numbers = [...section(limits, 'Invariants').matchAll(/^(\d+)\. /gm)].map(([, number]) => number);
  const [, ...gaps] = table(section(limits, 'Known gaps'), 'gap');
  expect(gaps.length).toBeGreaterThan(0);
  for (const [gap, invariants = ''] of gaps) {
    for (const number of invariants.split(', ')) expect(numbers, gap).toContain(number);
  }
});

/** Whether a text in quotation marks begins so, or goes on so after what a test fills in. */
function isTitleIn(source: string, title: string): boolean {
  return ["'", '"', '`', '} ', ': ', ', '].some((before) => source.includes(`${before}${title}`));
}

it('the sync reference explains every log line of an operation, and no other', () => {
  expect(listed(section(promise, 'The log of an operation'))).toEqual([...tracePoints]);
});
