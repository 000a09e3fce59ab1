import { type Command, defineCommand } from './command.ts';
import { loadProgram } from './daemon.ts';

/** `demo`: 0 only when every step held. */
export const demoCommand: Command = defineCommand(
  (yargs) => yargs,
  async () => {
    const { runDemo } = await loadProgram('../daemon/demo.ts');
    return runDemo();
  },
);
