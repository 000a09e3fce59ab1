import { closeSync, openSync } from 'node:fs';
import { ListenError } from '../../http/listen.ts';

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
  return isOfTooFewFiles(error) || (message.endsWith('unable to open database file') && areFilesUsedUp())
    ? 'allow more open files: ulimit -n, or LimitNOFILE= in the unit of the service'
    : null;
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
