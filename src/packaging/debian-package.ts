/**
 * Builds `dist/latchkey_<version>_<architecture>.deb` around the single executable (`npm run build:deb`). It needs
 * dpkg-deb and dpkg-shlibdeps (Debian: apt install dpkg-dev).
 *
 * What the program can write itself it writes: the unit, completions, the manual page. The rest are the templates
 * in `debian/`, where `@name@` stands for what is known only here.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { includedModules } from './bundle.ts';
import { nodeNotice, thirdPartyNotices } from './third-party.ts';

const root = join(import.meta.dirname, '../..');
const templates = join(import.meta.dirname, 'debian');

const { values: options } = parseArgs({
  options: {
    executable: { type: 'string', default: join(root, 'dist/executable/latchkey') },
    version: { type: 'string', default: packageVersion() },
    out: { type: 'string', default: join(root, 'dist') },
  },
});

const modules = await includedModules();

/** Where the files of the package are gathered, as they will lie on the machine. */
const workshop = mkdtempSync(join(tmpdir(), 'latchkey-package-'));
const tree = join(workshop, 'tree');
/** When it was made, in s since the epoch: what reproducible builds give, else now. */
const madeAt = process.env['SOURCE_DATE_EPOCH'] ?? String(Math.floor(Date.now() / 1000));
/** As Debian's own tools name who makes a package. */
const maintainer = `${process.env['DEBFULLNAME'] ?? 'The Latchkey authors'} <${process.env['DEBEMAIL'] ?? 'latchkey@latchkey.invalid'}>`;

// Directories and files are for everybody to read, whatever this shell's mask is.
process.umask(0o022);
try {
  const architecture = run('dpkg', ['--print-architecture']).trim();
  addProgram();
  addDocumentation();
  addControl(architecture);
  const file = join(options.out, `latchkey_${options.version}_${architecture}.deb`);
  mkdirSync(options.out, { recursive: true });
  const environment = { ...process.env, SOURCE_DATE_EPOCH: madeAt };
  run('dpkg-deb', ['--build', '--root-owner-group', tree, file], { env: environment });
  process.stdout.write(`${file}\n`);
} finally {
  rmSync(workshop, { recursive: true });
}

function addProgram(): void {
  const program = join(tree, 'usr/bin/latchkey');
  mkdirSync(dirname(program), { recursive: true });
  cpSync(options.executable, program);
  chmodSync(program, 0o755);
  // Of another system, so that the configuration of this one is not looked at.
  const unit = ['service', 'print', '--root', tree, '--program', '/usr/bin/latchkey'];
  const written = {
    'lib/systemd/system/latchkey.service': [...unit, '--config', '/etc/latchkey/config.yaml'],
    'usr/share/bash-completion/completions/latchkey': ['completion', 'bash'],
    'usr/share/zsh/vendor-completions/_latchkey': ['completion', 'zsh'],
    'usr/share/fish/vendor_completions.d/latchkey.fish': ['completion', 'fish'],
  };
  for (const [path, argv] of Object.entries(written)) add(path, run(program, argv));
  add('usr/share/man/man1/latchkey.1.gz', packed(run(program, ['man'])));
  add('etc/latchkey/config.yaml', template('config.yaml'));
}

function addDocumentation(): void {
  const folder = 'usr/share/doc/latchkey';
  const license = read('LICENSE').trim().split('\n').slice(1).join('\n').trim();
  const [copyright = '', ...terms] = license.split('\n\n');
  const paragraph = terms.map((text) => text.replaceAll(/^/gm, ' ')).join('\n .\n');
  const replaced = { copyright: copyright.replace(/^Copyright /, ''), license: paragraph };
  add(`${folder}/copyright`, template('copyright', replaced));
  add(`${folder}/changelog.gz`, packed(changelog()));
  add(`${folder}/third-party.gz`, packed(`${nodeNotice(root)}\n\n${thirdPartyNotices(root, modules)}`));
  add(`${folder}/CHANGELOG.md.gz`, packed(read('CHANGELOG.md')));
  add(`${folder}/README.md.gz`, packed(read('README.md')));
  // By the paths by which README and guides name them.
  for (const book of globSync('src/**/*.md', { cwd: root })) add(`${folder}/${book}`, read(book));
  cpSync(join(root, 'examples'), join(tree, folder, 'examples'), { recursive: true });
  add('usr/share/lintian/overrides/latchkey', template('lintian-overrides'));
}

/** What is new stands in CHANGELOG.md; Debian's own format is for its tools. */
function changelog(): string {
  const date = new Date(Number(madeAt) * 1000).toUTCString().replace('GMT', '+0000');
  const change = '  * What is new: /usr/share/doc/latchkey/CHANGELOG.md.gz';
  return `latchkey (${options.version}) stable; urgency=medium\n\n${change}\n\n -- ${maintainer}  ${date}\n`;
}

function addControl(architecture: string): void {
  for (const script of ['postinst', 'prerm', 'postrm']) {
    add(`DEBIAN/${script}`, template(script));
    chmodSync(join(tree, 'DEBIAN', script), 0o755);
  }
  add('DEBIAN/conffiles', '/etc/latchkey/config.yaml\n');
  const size = run('du', ['-sk', '--exclude=DEBIAN', tree]).split('\t')[0] ?? '';
  const libraries = neededLibraries();
  const { version } = options;
  add('DEBIAN/control', template('control', { version, architecture, maintainer, size, libraries }));
  const sums = run(
    'sh',
    ['-c', "find . -type f ! -path './DEBIAN/*' -printf '%P\\0' | sort -z | xargs -0 md5sum"],
    { cwd: tree },
  );
  add('DEBIAN/md5sums', sums);
}

/** The packages of the shared libraries that the executable is linked with. */
function neededLibraries(): string {
  mkdirSync(join(workshop, 'debian'));
  writeFileSync(
    join(workshop, 'debian/control'),
    'Source: latchkey\n\nPackage: latchkey\nArchitecture: any\n',
  );
  const found = run('dpkg-shlibdeps', ['-O', '--warnings=0', '-etree/usr/bin/latchkey'], { cwd: workshop });
  return found.trim().replace('shlibs:Depends=', '');
}

function packageVersion(): string {
  return (JSON.parse(read('package.json')) as { version: string }).version;
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** A template, with `@name@` replaced by each value. */
function template(name: string, values: Readonly<Record<string, string>> = {}): string {
  let text = readFileSync(join(templates, name), 'utf8');
  for (const [key, value] of Object.entries(values)) text = text.replaceAll(`@${key}@`, () => value);
  return text;
}

function add(path: string, content: string | Uint8Array): void {
  const file = join(tree, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

function packed(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}

function run(
  program: string,
  argv: readonly string[],
  given: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): string {
  return execFileSync(program, argv, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...given });
}
