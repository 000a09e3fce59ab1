import { type Command, defineCommand } from '../command.ts';
import { exitCode } from '../exit-code.ts';

/** `demo`: exits 0 only when every step succeeded. */
export const demoCommand: Command = defineCommand(
  (syntax) => syntax.example('latchkey demo', 'on a temporary store and agent'),
  async (args, output) => {
    const { runDemo } = await import('../../daemon/sandbox/demo.ts');
    if (!args.json) return await runDemo(output.print);
    const steps: string[] = [];
    const code = await runDemo((line) => steps.push(line));
    output.printJson({ ok: code === exitCode.done, steps });
    return code;
  },
);
