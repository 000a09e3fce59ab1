/**
 * Builds `dist/latchkey_<version>_<architecture>.deb` around the single executable (`npm run build:deb`). It needs
 * dpkg-deb and dpkg-shlibdeps (Debian: apt install dpkg-dev).
 *
 * The program itself writes the unit, the completions and the manual page. The other files are templates in `debian/`,
 * where `@name@` is a variable.
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
import { buildPage, pages } from './console-page.ts';
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

const built = await Promise.all(pages.map(buildPage));
const modules = [...(await includedModules()), ...built.flatMap((page) => page.modules)];

/** A temporary directory with the files of the package, in their places on the machine. */
const temporary = mkdtempSync(join(tmpdir(), 'latchkey-package-'));
const tree = join(temporary, 'tree');
/** The time of the build, in s since the epoch. Reproducible builds set SOURCE_DATE_EPOCH. */
const madeAt = process.env['SOURCE_DATE_EPOCH'] ?? String(Math.floor(Date.now() / 1000));
/** The variables of Debian's tools. */
const maintainer = `${process.env['DEBFULLNAME'] ?? 'The Latchkey authors'} <${process.env['DEBEMAIL'] ?? 'latchkey@latchkey.invalid'}>`;

// All users may read the files, whatever the umask of this shell.
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
  rmSync(temporary, { recursive: true });
}

function addProgram(): void {
  const program = join(tree, 'usr/bin/latchkey');
  mkdirSync(dirname(program), { recursive: true });
  cpSync(options.executable, program);
  chmodSync(program, 0o755);
  // With --root, the command does not check the configuration of this machine.
  const unit = ['service', 'print', '--root', tree, '--program', '/usr/bin/latchkey'];
  const written = {
    'lib/systemd/system/latchkey.service': [...unit, '--config', '/etc/latchkey/config.yaml'],
    'usr/share/bash-completion/completions/latchkey': ['completion', 'bash'],
    'usr/share/zsh/vendor-completions/_latchkey': ['completion', 'zsh'],
    'usr/share/fish/vendor_completions.d/latchkey.fish': ['completion', 'fish'],
  };
  for (const [path, argv] of Object.entries(written)) add(path, run(program, argv));
  add('usr/share/man/man1/latchkey.1.gz', gzipped(run(program, ['man'])));
  add('etc/latchkey/config.yaml', template('config.yaml'));
}

function addDocumentation(): void {
  const folder = 'usr/share/doc/latchkey';
  const license = read('LICENSE').trim().split('\n').slice(1).join('\n').trim();
  const [copyright = '', ...terms] = license.split('\n\n');
  const paragraph = terms.map((text) => text.replaceAll(/^/gm, ' ')).join('\n .\n');
  const replaced = { copyright: copyright.replace(/^Copyright /, ''), license: paragraph };
  add(`${folder}/copyright`, template('copyright', replaced));
  add(`${folder}/changelog.gz`, gzipped(changelog()));
  add(`${folder}/third-party.gz`, gzipped(`${nodeNotice(root)}\n\n${thirdPartyNotices(root, modules)}`));
  add(`${folder}/CHANGELOG.md.gz`, gzipped(read('CHANGELOG.md')));
  add(`${folder}/README.md.gz`, gzipped(read('README.md')));
  // README and guides name these paths.
  for (const document of globSync('src/**/*.md', { cwd: root })) add(`${folder}/${document}`, read(document));
  cpSync(join(root, 'examples'), join(tree, folder, 'examples'), { recursive: true });
  add('usr/share/lintian/overrides/latchkey', template('lintian-overrides'));
}

/** A changelog in Debian's format, for its tools. It refers to CHANGELOG.md. */
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

/** The Debian packages of the shared libraries of the executable. */
function neededLibraries(): string {
  mkdirSync(join(temporary, 'debian'));
  writeFileSync(
    join(temporary, 'debian/control'),
    'Source: latchkey\n\nPackage: latchkey\nArchitecture: any\n',
  );
  const output = run('dpkg-shlibdeps', ['-O', '--warnings=0', '-etree/usr/bin/latchkey'], { cwd: temporary });
  return output.trim().replace('shlibs:Depends=', '');
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

function gzipped(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}

function run(
  program: string,
  argv: readonly string[],
  more: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): string {
  return execFileSync(program, argv, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...more });
}
