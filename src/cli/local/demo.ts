import { type Command, defineCommand } from '../command.ts';

/** `demo`: 0 only when every step held. */
export const demoCommand: Command = defineCommand(
  (yargs) => yargs,
  async () => {
    const { runDemo } = await import('../../daemon/trial/demo.ts');
    return runDemo();
  },
);
