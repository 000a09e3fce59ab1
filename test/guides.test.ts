import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { globalOptions } from '../src/cli/command.ts';
import { findCommand, parseArguments, splitLine } from '../src/cli/command-line.ts';
import { commands } from '../src/cli/commands.ts';
import { settings } from '../src/config/configuration.ts';
import { formatConfigError } from '../src/config/errors.ts';
import { parseConfiguration } from '../src/config/load.ts';
import { keysOf, settingsOf } from '../src/config/section.ts';
import { eventTypes } from '../src/domain/event.ts';
import { newTestKey } from './features/leases/support/documents.ts';
import { certificate, privateKey } from './support/network/certificate.ts';
import { blocksOf, chapterOf, guides, readExample, wordsOf } from './support/reference/guides.ts';

const publicKey = JSON.stringify(newTestKey().jwk);
const repository = join(import.meta.dirname, '..');

/** The programs besides `latchkey` that a guide may call: those of the system. */
const systemPrograms = new Set([
  'apt',
  'chown',
  'curl',
  'install',
  'journalctl',
  'pg_dump',
  'pg_restore',
  'psql',
  'rm',
  'sudoedit',
  'systemctl',
  'tar',
]);

/** Why `latchkey` would not understand a command line; null if it does. */
async function misunderstanding(argv: readonly string[]): Promise<string | null> {
  try {
    const { words, found } = await findCommand(splitLine(argv, globalOptions).words, commands);
    if (found === null || 'commands' in found) return 'it is no whole command';
    if (!argv.includes('--help')) await parseArguments(argv, words, found);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What of a guide is looked at. */
const linksIn = (text: string) => [...text.matchAll(/\]\(([^)#:]+)\)(?:, ([A-Z][^.;:|)]*))?/g)];
const citationsIn = (text: string) => linksIn(text).filter(([, , heading]) => heading !== undefined);
const blocksOfShell = (text: string) => blocksOf(text, 'sh');
const blocksOfYaml = (text: string) => blocksOf(text, 'yaml');
const commandsInSentences = (text: string) => [
  ...text.replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '').matchAll(/`(?:sudo )?latchkey ([^`]+)`/g),
];
const sections = (keysOf(settings) ?? []).map(({ key }) => key).join('|');
const settingsIn = (text: string) => [
  ...text.matchAll(new RegExp(`\`((?:${sections})\\.[a-z_.[\\]]+)`, 'g')),
];
const wordsIn = (text: string) => [...text.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)];

test('there is something of everything that is looked at in the guides', () => {
  const all = guides.map(readExample).join('\n');
  const looks = [linksIn, citationsIn, blocksOfShell, blocksOfYaml, commandsInSentences, settingsIn, wordsIn];
  for (const look of looks) expect(look(all).length, look.name).toBeGreaterThan(2);
  // test/e2e/existing-software/readme.test.ts and test/e2e/lease-guide.test.ts run the programs;
  // test/features/leases/lease-vectors-reference.test.ts compares the documents.
  const languages = [...all.matchAll(/^ *```(\w+)$/gm)].map(([, language]) => language);
  expect(new Set(languages)).toEqual(new Set(['sh', 'yaml', 'js', 'json', 'ts', 'text']));
});

describe.each(guides)('%s', (path) => {
  const text = readExample(path);

  test('leads only to what there is: files, and headings in them', () => {
    for (const [, target = '', citation = ''] of linksIn(text)) {
      const file = join('examples', dirname(path), target);
      expect(existsSync(join(repository, file)), `${path}: ${target}`).toBe(true);
      if (citation === '' || !target.endsWith('.md')) continue;
      const headings = [...readFileSync(join(repository, file), 'utf8').matchAll(/^#+ (.+)$/gm)];
      expect(
        headings.map(([, heading]) => heading),
        `${path}: ${target}`,
      ).toContain(citation.trim());
    }
  });

  test('has commands that the shell and latchkey understand', async () => {
    for (const block of blocksOfShell(text)) {
      expect(spawnSync('bash', ['-n'], { input: block }).status, block).toBe(0);
      for (const line of block.split('\n').filter((each) => each.trim() !== '')) {
        const [program = '', ...argv] = wordsOf(line.replace(/ > \S+$/, ''));
        const fault = program === 'latchkey' ? await misunderstanding(argv) : null;
        const isKnown = program === 'latchkey' || systemPrograms.has(program);
        expect([line, isKnown, fault]).toEqual([line, true, null]);
      }
    }
  });

  test('has commands within its sentences that latchkey understands', async () => {
    for (const [, line = ''] of commandsInSentences(text)) {
      const found = await misunderstanding(wordsOf(line));
      // A sentence may leave out what stands for itself in it.
      expect([
        line,
        found?.replace(
          /^An argument is missing: .*|^--\S+ is required$|^These options are required: .*/s,
          'short',
        ),
      ]).toEqual([line, found === null ? undefined : 'short']);
    }
  });

  test('has configurations that are sound', () => {
    for (const block of blocksOfYaml(text)) {
      const files: Record<string, string> = {
        '/etc/latchkey/config.yaml': block,
        '/etc/latchkey/tls/cert.pem': certificate,
        '/etc/latchkey/tls/key.pem': privateKey,
        '/etc/latchkey/root-1.pub.jwk': publicKey,
        '/etc/latchkey/root-2.pub.jwk': publicKey,
        '/etc/latchkey/database-url': 'postgres://latchkey:secret@database.example.com/licenses',
      };
      const result = parseConfiguration({
        file: '/etc/latchkey/config.yaml',
        environment: {},
        home: '/',
        platform: 'linux',
        directory: '/',
        readFile: (name) => files[name] ?? 'a-secret',
      });
      expect(result.ok ? [] : result.errors.map(formatConfigError), block).toEqual([]);
    }
  });

  test('names settings and words of the interface that exist', () => {
    const keys = new Set(
      settingsOf(settings).flatMap(({ path: steps }) => {
        const names = steps.filter((step) => step !== '[]');
        return names.map((_, index) => names.slice(0, index + 1).join('.'));
      }),
    );
    // The type of an event may look like a setting.
    for (const type of eventTypes) keys.add(type);
    for (const [, key = ''] of settingsIn(text)) expect(keys, path).toContain(key.replaceAll('[]', ''));
    const sources = readdirSync(join(repository, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ts|md)$/.test(name))
      .map((name) => readFileSync(join(repository, 'src', name), 'utf8'))
      .concat(chapterOf(readExample('guides/maintain.md'), 'Metrics'))
      .join('\n');
    for (const [, word = ''] of wordsIn(text)) {
      expect(sources.includes(word), `${path}: ${word}`).toBe(true);
    }
  });
});

test('the guides are those that their README leads to', () => {
  const start = readExample('README.md');
  for (const path of guides.filter((each) => each !== 'README.md')) expect(start).toContain(`(${path})`);
});

test('every alert is a heading of the page for trouble, with what to do, and it has no other', () => {
  const { groups } = parse(readExample('prometheus/alerts.yaml')) as {
    groups: { rules: { alert: string }[] }[];
  };
  const chapter = chapterOf(readExample('guides/troubleshooting.md'), 'Alerts');
  const headings = [...chapter.matchAll(/^### (.+)\n\n(.+)$/gm)];
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect(new Set(headings.map(([, heading]) => heading))).toEqual(new Set(alerts));
  for (const [, heading, told = ''] of headings) expect(told.length, heading).toBeGreaterThan(80);
});

test('every kind of secret that a configuration or a command knows is told how to rotate', () => {
  const chapter = chapterOf(readExample('guides/maintain.md'), 'Rotate each secret');
  for (const word of [
    'secret_file',
    'api_key_file',
    'upstream.proxy',
    'listen.tls',
    'admin.token',
    'api.key',
    'product rotate',
    'account rotate',
    'token revoke',
  ]) {
    expect(chapter).toContain(word);
  }
});
