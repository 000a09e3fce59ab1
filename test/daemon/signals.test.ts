import { expect, test } from 'vitest';
import { endingSignalsOf } from '../../src/daemon/system/process.ts';

test('on Windows a closed window and Ctrl-Break end a daemon, and elsewhere SIGHUP reloads', () => {
  expect(endingSignalsOf('win32')).toEqual(['SIGINT', 'SIGTERM', 'SIGBREAK', 'SIGHUP']);
  for (const platform of ['linux', 'darwin'] as const) {
    expect(endingSignalsOf(platform)).toEqual(['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2']);
  }
});
