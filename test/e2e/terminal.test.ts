import { join } from 'node:path';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { eventually, startHarness } from '../support/harness/agent-harness.ts';
import { ownProgram } from '../support/process/command-line.ts';
import { operate } from '../support/app/people.ts';
import { openPseudoTerminal } from '../support/process/pseudo-terminal.ts';

const escape = '\u001B';
/** Control sequences for colours, cursor moves and clearing. */
// oxlint-disable-next-line no-control-regex
const sequences = /\u001B\[[\d;?]*[A-Za-z]/g;

test('a terminal shows the state of the daemon in colour', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const argv = [...ownProgram, 'status', '--state-dir', join(harness.directory, 'state')];
  await using terminal = openPseudoTerminal(argv, { columns: 100 });
  expect(await terminal.ended).toBe(0);
  expect(terminal.written()).toContain(`${escape}[32mup${escape}[39m`);
});

test('a terminal shows a hostile e-mail address as text in a table that fits', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const issued = await operate(
    harness.directory,
    'token',
    'issue',
    '--scope',
    'ops',
    '--label',
    `${escape}]0;x\u0007${escape}[31m山田\tx`,
  );
  expect(issued.code).toBe(0);
  const argv = [...ownProgram, 'token', 'list', '--state-dir', join(harness.directory, 'state')];
  const outs = await Promise.all(
    [60, 200].map(async (columns) => {
      await using terminal = openPseudoTerminal(argv, { columns });
      expect(await terminal.ended).toBe(0);
      return [columns, terminal.written()] as const;
    }),
  );
  for (const [columns, written] of outs) {
    const text = written.replaceAll(/\r\n/g, '\n').replaceAll(sequences, '');
    expect(text).toContain('␛]0;x␇␛[31m山田␉x');
    expect(text).not.toMatch(/(?!\n)\p{Cc}/u);
    for (const line of text.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(columns);
  }
  await using plain = openPseudoTerminal(argv, { columns: 200, environment: { NO_COLOR: '1' } });
  await plain.ended;
  expect(plain.written()).not.toContain(escape);
});

test.each([[['outbox', '--help']], [['init']]])(
  'a terminal without a known width has 80 columns: %j',
  async (words) => {
    const [unknown, usual] = await Promise.all(
      [0, 80].map(async (columns) => {
        await using terminal = openPseudoTerminal([...ownProgram, ...words], { columns });
        if (words[0] === 'init') {
          await eventually(() => Promise.resolve(terminal.written().includes('└')));
          terminal.type('\u0003');
        }
        await terminal.ended;
        return terminal.written();
      }),
    );
    expect(unknown).toBe(usual);
    expect(unknown).toMatch(/.{40}/);
  },
);
