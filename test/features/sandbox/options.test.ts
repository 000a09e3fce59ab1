import { expect, test } from 'vitest';
import { latchkey } from '../../support/process/command-line.ts';

test.each([
  ['--latency long', '--latency must be a duration'],
  ['--error-rate 2', '--error-rate must be a number from 0 to 1'],
  ['--plain', '--plain is about the agent: add --with-agent'],
  ['--port -1', '--port must be a whole number from 0 to 65535'],
  ['--port 1.5', '--port must be a whole number from 0 to 65535'],
  ['--port 65536', '--port must be a whole number from 0 to 65535'],
])('latchkey sandbox %s fails with a line that names the mistake', async (options, message) => {
  const { code, out, err } = await latchkey('sandbox', ...options.split(' '));
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(message);
  expect(err).toContain('See: latchkey sandbox --help');
});
