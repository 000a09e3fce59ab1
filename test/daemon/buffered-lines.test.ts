import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { BufferedLines } from '../../src/daemon/log.ts';

test('Buffered lines are written together, in order, and each once.', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const written: string[] = [];
  const lines = new BufferedLines({ write: (text) => written.push(text) });
  lines.write('a\n');
  lines.write('b\n');
  expect(written).toEqual([]);
  vi.advanceTimersByTime(5);
  expect(written).toEqual(['a\nb\n']);
  lines.write('c\n');
  lines.flushSync();
  vi.advanceTimersByTime(5);
  expect(written).toEqual(['a\nb\n', 'c\n']);
});

test('The flush of pino writes the buffered lines at once.', () => {
  const written: string[] = [];
  const log = pino(
    { base: null, timestamp: false },
    new BufferedLines({ write: (text) => written.push(text) }),
  );
  log.info('the store is migrated');
  expect(written).toEqual([]);
  log.flush();
  expect(written).toEqual(['{"level":30,"msg":"the store is migrated"}\n']);
});
