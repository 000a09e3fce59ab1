import { closeSync, openSync } from 'node:fs';
import { homeDirectory } from '../../config/home.ts';
import { variableBehind } from '../../config/place.ts';
import { ListenError } from '../../http/listen.ts';
import { StateDirectoryUnusable } from '../../store/sqlite/faults.ts';

/** So many files more than are open a start needs at least. */
const fewestFiles = 8;

/** Why a start failed, with what a person can do about it as far as the error does not say it. */
export function explainFailure(error: Error): string {
  const advice = adviceOn(error);
  return advice === null ? error.message : `${error.message.replace(/\.$/, '')}; ${advice}`;
}

function adviceOn(error: Error): string | null {
  const { message } = error;
  if (error instanceof ListenError && error.fault === 'in_use') {
    return 'choose another: --listen or --socket, or listen in the configuration';
  }
  if (/disk is full|\bENOSPC\b|\bEDQUOT\b/.test(message)) {
    return 'free some space there and start it again: without any it cannot even answer verifies';
  }
  // SQLite does not say why it cannot open a file.
  if (isOfTooFewFiles(error) || (message.endsWith('unable to open database file') && areFilesUsedUp())) {
    return 'allow more open files: ulimit -n, or LimitNOFILE= in the unit of the service';
  }
  return adviceOnPath(error);
}

/** Names the variable behind a default path that this user cannot use: it may come from another user's environment. */
function adviceOnPath(error: Error): string | null {
  const { env: environment, platform } = process;
  const machine = { environment, platform, home: homeDirectory() ?? '/' };
  const [path, option] =
    error instanceof ListenError
      ? [error.socket, '--socket']
      : [error instanceof StateDirectoryUnusable ? error.directory : null, '--state-dir'];
  const variable = path === null ? null : variableBehind(path, machine);
  return variable === null
    ? null
    : `the path follows from ${variable}: correct that variable, or choose another path: ${option}`;
}

function areFilesUsedUp(): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < fewestFiles) opened.push(openSync(process.execPath, 'r'));
    return false;
  } catch (error) {
    return isOfTooFewFiles(error);
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/** By its text: that of a thread, or of a module that cannot be loaded, has no code. */
export function isOfTooFewFiles(error: unknown): error is Error {
  return error instanceof Error && /\bEMFILE\b|too many open files/.test(error.message);
}
