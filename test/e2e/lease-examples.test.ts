import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFakeHolder, startHolderWith, type FakeHolder } from '../features/leases/support/fake-holder.ts';
import { makeLeaseVectors } from '../features/leases/support/vectors.ts';
import {
  buildExample,
  clientExamples,
  missingFor,
  runExample,
  type ClientExample,
} from '../support/reference/client-examples.ts';
import { readExample } from '../support/reference/guides.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';

/* Programs with root keys compiled in, against servers that answer like a holder or like an attacker. */

// The programs ask the clock of this machine.
const made = makeLeaseVectors();
const vectors = made.vectors.filter((each) => each.isForStrictParsers === undefined);
/** One answer for each conclusion. */
const samples = [
  ...new Map(vectors.map((each) => [`${each.expected} ${String(each.entitlements)}`, each])).values(),
];
/** How many processes run at the same time. */
const parallel = 3;

let directory: TemporaryDirectory;
let holder: FakeHolder;
beforeAll(async () => {
  directory = temporaryDirectory();
  holder = await startFakeHolder(made);
});
afterAll(async () => {
  await holder[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

it('both programs in Python have the same check', () => {
  expect(readExample('clients/python-async/lease.py')).toBe(readExample('clients/python/lease.py'));
});

describe.each(clientExamples)('the program in $name', (example) => {
  let command: Awaited<ReturnType<typeof buildExample>>;
  let missing: string | null;
  beforeAll(async () => {
    missing = await missingFor(example);
    if (missing === null) command = await buildExample(example, directory.path, made);
  });

  it('concludes from each answer, good or bad, what it must', async ({ skip }) => {
    if (missing !== null) skip(missing);
    // Both programs in Python have the same check.
    const asked = example.name === 'python-async' ? samples : vectors;
    const waiting = asked.map((each, index) => ({ ...each, index }));
    const wrong: string[] = [];
    const work = async (): Promise<void> => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const { name, typed, expected, entitlements, index } = next;
        const said = await conclude(example, command, { typed, url: holder.url, file: String(index) });
        const wanted = wantedFor({ expected, entitlements });
        if (said !== wanted) wrong.push(`${name}: ${said}, not ${wanted}`);
      }
    };
    const counted = holder.counted.length;
    await Promise.all(Array.from({ length: parallel }, work));
    expect(wrong).toEqual([]);
    expect(holder.counted.length - counted).toBe(asked.filter(({ expected }) => expected === 'valid').length);
  });

  it('is not fooled by an answer that was recorded before', async ({ skip }) => {
    if (missing !== null) skip(missing);
    const [{ typed, answer } = { typed: '', answer: () => ({ keys: '' }) }] = vectors;
    let recorded: object | null = null;
    await using recorder = await startHolderWith((_, nonce) => ({
      body: { data: (recorded ??= answer(nonce)) },
    }));
    const ask = async () => await conclude(example, command, { typed, url: recorder.url, file: 'recorded' });
    expect(await ask()).toBe('valid, uses: 1');
    expect(await ask()).toBe('undetermined');
    expect(await ask()).toBe('undetermined');
    expect(new Set(recorder.asked.map(({ query }) => query.get('nonce'))).size).toBe(3);
    for (const { query } of recorder.asked) {
      expect(query.get('nonce')).toMatch(/^[\w-]{16,128}$/);
      expect(query.get('product_key')).toBe(made.product);
    }
  });

  it.skipIf(example.nonce === null)(
    'concludes nothing from a lease that is right if its own nonce is empty',
    async ({ skip }) => {
      if (missing !== null) skip(missing);
      const edits = example.nonce === null ? [] : [example.nonce];
      const careless = await buildExample(example, join(directory.path, 'careless'), made, edits);
      const [{ typed, answer } = { typed: '', answer: () => ({ keys: '' }) }] = vectors;
      const { proof: _, ...withoutProof } = answer('') as { proof?: string };
      for (const data of [answer(''), withoutProof]) {
        await using recorder = await startHolderWith(() => ({ body: { data } }));
        const asked = { typed, url: recorder.url, file: 'careless' };
        expect(await conclude(example, careless, asked)).toBe('undetermined');
        expect(recorder.counted).toEqual([]);
      }
    },
  );

  it('refuses retired keys after it has seen the next key statement', async ({ skip }) => {
    if (missing !== null) skip(missing);
    const [older, newer] = ['a lease and its proof', 'a newer key statement'].map(
      (name) => vectors.find((each) => each.name === name)?.typed ?? '',
    );
    const ask = async (typed = '') =>
      await conclude(example, command, { typed, url: holder.url, file: 'versions', isKept: true });
    await writeFile(join(directory.path, `${example.name}-versions`), 'not a number');
    expect(await ask(older)).toBe('valid, uses: 1');
    expect(await ask(newer)).toBe('valid, uses: 1');
    expect(await ask(older)).toBe('undetermined');
  });

  it.for([
    ['license_not_found', 404, /^refused: not found$/],
    ['no_seat_left', 409, /^refused: no seat left$/],
    ['license_expired', 409, /^refused: expired$/],
    ['lease_not_found', 404, /^(?:undetermined|refused: not activated)$/],
    ['verdict_expired', 503, /^undetermined$/],
  ] as const)(
    'concludes from the problem %s (%i) what matches %s',
    async ([code, status, said], { skip }) => {
      if (missing !== null) skip(missing);
      await using refusing = await startHolderWith(() => ({
        status,
        body: { code, title: code, detail: '', status },
      }));
      const found = await conclude(example, command, { typed: 'KEY', url: refusing.url, file: 'problem' });
      expect(found).toMatch(said);
    },
  );

  it('concludes nothing from a server that only says that the license is valid', async ({ skip }) => {
    if (missing !== null) skip(missing);
    for (const body of [
      { data: { enabled: true, uses: 1 } },
      { data: null },
      [],
      'page',
      { data: { lease: [], keys: {} } },
    ]) {
      await using liar = await startHolderWith(() => ({ body }));
      expect(await conclude(example, command, { typed: 'KEY', url: liar.url, file: 'liar' })).toBe(
        'undetermined',
      );
      expect(liar.counted).toEqual([]);
    }
  });
});

const states = new Set(['disabled', 'ended', 'blocked', 'replaced']);

/** What a program must print. */
function wantedFor({
  expected,
  entitlements = [],
}: {
  expected: string;
  entitlements: readonly string[] | undefined;
}): string {
  const unlocked = entitlements.length === 0 ? '' : `entitlements: ${entitlements.join(' ')}, `;
  if (expected === 'valid') return `valid, ${unlocked}uses: 1`;
  if (expected === 'license_expired') return 'refused: expired';
  return states.has(expected) ? `refused: ${expected}` : 'undetermined';
}

/** What a program prints. By default, it has seen the keys of the answers in another run. */
async function conclude(
  { name }: ClientExample,
  command: Awaited<ReturnType<typeof buildExample>>,
  { typed, url, file, isKept = false }: { typed: string; url: string; file: string; isKept?: boolean },
): Promise<string> {
  const path = join(directory.path, `${name}-${file}`);
  if (!isKept) await writeFile(path, String(made.minKeysVersion));
  const { stdout, code } = await runExample(command, [typed], {
    LATCHKEY_URL: url,
    LATCHKEY_LAST_KNOWN: path,
  });
  const said = stdout.trim().split('\n').join(', ');
  const codes = [/^valid/, /^refused/, /^undetermined$/].map((verdict) => verdict.test(said));
  expect([said, code]).toEqual([said, codes.indexOf(true)]);
  return said;
}
