import { type Command, defineCommand } from '../command.ts';

/** `demo`: exits 0 only when every step succeeded. */
export const demoCommand: Command = defineCommand(
  (syntax) => syntax,
  async () => {
    const { runDemo } = await import('../../daemon/trial/demo.ts');
    return runDemo();
  },
);
