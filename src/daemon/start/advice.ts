import { ListenError } from '../../http/listen.ts';

/** What a person can do about a start that failed, as far as the error does not say it. */
export function adviceOn(error: Error): string {
  if (error instanceof ListenError && error.fault === 'in_use') {
    return '; choose another: --listen or --socket, or listen in the configuration';
  }
  if (/disk is full|\bENOSPC\b|\bEDQUOT\b/.test(error.message)) {
    return '; free some space there and start it again: without any it cannot even answer verifies';
  }
  return isOfTooFewFiles(error)
    ? '; allow more open files: ulimit -n, or LimitNOFILE= in the unit of the service'
    : '';
}

/** By its text: that of a thread, or of a module that cannot be loaded, has no code. */
export function isOfTooFewFiles(error: unknown): error is Error {
  return error instanceof Error && /\bEMFILE\b|too many open files/.test(error.message);
}
