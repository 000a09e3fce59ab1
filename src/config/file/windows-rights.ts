import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { win32 } from 'node:path';
import { findStrangers, parseSddl, type Strangers } from './sddl.ts';

/** The programs of Windows that show and change who may access a file. Tests pass recorded outputs. */
export interface WindowsTools {
  /** The home directory of this user: only this user and administrators can own what is in it. */
  readonly home: string;
  /** The output of `whoami /user`. */
  readonly whoami: () => string;
  /** The text that `icacls PATH /save` writes. */
  readonly save: (path: string) => string;
  readonly icacls: (args: readonly string[]) => void;
}

/** Who besides this user, SYSTEM and administrators may access files, or why that is not known. */
export type Rights =
  | { readonly kind: 'checked'; readonly files: readonly ({ readonly name: string } & Strangers)[] }
  /** The programs gave no answer. */
  | { readonly kind: 'unchecked'; readonly reason: string }
  /** Windows refuses to show the rights to this user. */
  | { readonly kind: 'denied'; readonly reason: string };

/** Checks a file or directory, or with `\*` at the end of the path everything in a directory. */
export function checkRights(path: string, tools: WindowsTools = thisMachine): Rights {
  const user = findUser(tools);
  if (user === null) return { kind: 'unchecked', reason: 'whoami did not name this user' };
  try {
    const isOwnerKnown = isInside(path, tools.home);
    const saved = parseSaved(tools.save(path));
    const files = saved.flatMap(({ name, sddl }) => {
      const entries = parseSddl(sddl);
      return entries === null ? [] : [{ name, ...findStrangers(entries, { user, isOwnerKnown }) }];
    });
    return files.length === 0
      ? { kind: 'unchecked', reason: 'icacls gave no answer' }
      : { kind: 'checked', files };
  } catch (error) {
    const isRefused = error instanceof Error && 'status' in error && typeof error.status === 'number';
    const why = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    return isRefused
      ? { kind: 'denied', reason: 'icacls cannot read its access rights' }
      : { kind: 'unchecked', reason: `icacls cannot be run${why}` };
  }
}

/** Gives a new file or directory to this user, SYSTEM and administrators alone. `checkRights` says whether it worked. */
export function restrictToOwner(
  path: string,
  kind: 'file' | 'directory',
  tools: WindowsTools = thisMachine,
): void {
  try {
    const user = findUser(tools);
    if (user !== null) tools.icacls([path, ...restriction(user, kind)]);
  } catch {
    // A file system without access rights, for instance.
  }
}

/** The command line that gives a file or directory to this user, SYSTEM and administrators alone. */
export function adviceToRestrict(
  path: string,
  kind: 'file' | 'directory',
  strangers: readonly string[],
  tools: WindowsTools = thisMachine,
): string {
  const user = findUser(tools) ?? 'USER';
  const removed = strangers.filter((sid) => sid !== ownerRights).map(toArgument);
  const removal = removed.length === 0 ? [] : ['/remove:g', ...removed];
  const words = [...restriction(user, kind), ...removal];
  return ['icacls', path, ...words].map((word) => (/[ *()]/.test(word) ? `"${word}"` : word)).join(' ');
}

const ownerRights = 'S-1-3-4';

/** The last entry takes from the owner the right to change the rights: another user may have created the directory. */
function restriction(user: string, kind: 'file' | 'directory'): readonly string[] {
  const inherited = kind === 'directory' ? '(OI)(CI)' : '';
  const full = ['S-1-5-18', 'S-1-5-32-544', user].map((sid) => `*${sid}:${inherited}F`);
  return ['/inheritance:r', '/grant:r', ...new Set(full), `*${ownerRights}:${inherited}(RC)`];
}

/** icacls takes a SID with `*`, and names of accounts without. */
function toArgument(account: string): string {
  return account.startsWith('S-') ? `*${account}` : account;
}

const names: Readonly<Record<string, string>> = {
  'S-1-1-0': 'Everyone',
  'S-1-5-11': 'Authenticated Users',
  'S-1-5-32-545': 'Users',
  [ownerRights]: 'an unknown owner',
};

export function formatAccounts(accounts: readonly string[]): string {
  return accounts.map((account) => names[account] ?? account).join(', ');
}

function findUser({ whoami: show }: WindowsTools): string | null {
  try {
    return parseSid(show());
  } catch {
    return null;
  }
}

/** The SID in the output of `whoami /user`, which is its last word in every language. */
export function parseSid(output: string): string | null {
  return output.match(/S-1(?:-\d+)+/g)?.at(-1) ?? null;
}

/** The lines of a saved file: the name of a file, then its rights. */
export function parseSaved(text: string): readonly { readonly name: string; readonly sddl: string }[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  return lines.flatMap((sddl, index) =>
    /^[OGDS]:/.test(sddl) && index > 0 ? [{ name: lines[index - 1] ?? '', sddl }] : [],
  );
}

function isInside(path: string, folder: string): boolean {
  const way = win32.relative(folder, path);
  return way !== '..' && !way.startsWith('..\\') && !win32.isAbsolute(way);
}

const timeoutMs = 10_000;

/** Runs a program of Windows. Names its folder: otherwise Windows looks in the working directory first. */
export function runWindowsProgram(program: string, args: readonly string[]): string {
  return runProgram(
    win32.join(process.env['SystemRoot'] ?? String.raw`C:\Windows`, 'System32', program),
    args,
  );
}

/** Runs a program and returns its output. */
export function runProgram(path: string, args: readonly string[]): string {
  const { execFileSync } = process.getBuiltinModule('node:child_process');
  return execFileSync(path, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    windowsHide: true,
  });
}

function save(path: string): string {
  const directory = mkdtempSync(win32.join(tmpdir(), 'latchkey-rights-'));
  try {
    const file = win32.join(directory, 'saved');
    runWindowsProgram('icacls.exe', [path, '/save', file]);
    return readSaved(file);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Empty if icacls wrote nothing, as under Wine. */
function readSaved(file: string): string {
  try {
    return readFileSync(file, 'utf16le');
  } catch {
    return '';
  }
}

let whoami: string | null = null;

const thisMachine: WindowsTools = {
  get home() {
    return homedir();
  },
  whoami: () => (whoami ??= runWindowsProgram('whoami.exe', ['/user'])),
  save,
  icacls: (args) => {
    runWindowsProgram('icacls.exe', args);
  },
};
