import { z } from 'zod';
import { type Command, defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Shown } from '../format.ts';
import { type Hint, hintFor } from '../hint.ts';
import type { Output } from '../output.ts';
import type { Syntax } from '../syntax/declaration.ts';
import type { Answer, Call } from './call.ts';
import { otherVersion } from './endpoint.ts';
import { reachDaemon } from './reach.ts';

/** How an answer is read and shown. */
export interface AnswerView<Shape> {
  readonly schema: z.ZodType<Shape>;
  /** `hint` writes the commands that are advised. */
  readonly show: (data: Shape, answer: Answer, hint: Hint) => Shown;
  /** What time it is for whoever answers, in epoch ms; default: the `Date` of the answer. */
  readonly now?: (data: Shape) => number;
  /** The exit code for the answer; default: done. */
  readonly judge?: (data: Shape, answer: Answer) => number;
}

/** Makes a command that sends one request to the running daemon and shows the answer. */
export function defineRequest<Options extends GlobalOptions, Shape>(
  declare: (syntax: Syntax<GlobalOptions>) => Syntax<Options>,
  toCall: (args: Options) => Call,
  view: AnswerView<Shape>,
): Command {
  return defineCommand(declare, (args, output) => ask(args, output, toCall(args), view));
}

/** Asks the running daemon with the admin token, shows what it says and gives the exit code. */
export async function ask<Shape>(
  options: GlobalOptions,
  output: Output,
  request: Call,
  view: AnswerView<Shape>,
): Promise<number> {
  const asked = await inquire(options, request, view.schema);
  if (!asked.ok) return asked.complain(output);
  return await show(options, output, asked, view);
}

/** What the daemon said to a request that a command goes on from; `problem`: the code of its refusal. */
export type Asked<Shape> =
  | { readonly ok: true; readonly data: Shape; readonly raw: unknown; readonly answer: Answer }
  | {
      readonly ok: false;
      readonly problem: string | null;
      /** Prints why, and gives the exit code. */
      readonly complain: (output: Output) => number;
    };

/** Asks the running daemon with the admin token; prints nothing. */
export async function inquire<Shape>(
  options: GlobalOptions,
  request: Call,
  schema: z.ZodType<Shape>,
): Promise<Asked<Shape>> {
  const reached = await reachDaemon(options, request, true);
  if (!reached.ok) {
    const complain = (output: Output): number => {
      output.complain(reached.lines);
      return reached.code;
    };
    return { ok: false, problem: null, complain };
  }
  const { answer } = reached;
  if (answer.status < 300) return understand(answer, schema, request);
  const code = problem.safeParse(answer.body).data?.code ?? null;
  return { ok: false, problem: code, complain: (output) => refuse(output, answer) };
}

/** Prints a 2xx answer, as JSON or in words, and gives the exit code. */
export async function report<Shape>(
  options: GlobalOptions,
  output: Output,
  answer: Answer,
  view: AnswerView<Shape>,
): Promise<number> {
  const understood = understand(answer, view.schema, {});
  return understood.ok ? await show(options, output, understood, view) : understood.complain(output);
}

function understand<Shape>(
  answer: Answer,
  schema: z.ZodType<Shape>,
  { method = 'GET' }: Pick<Call, 'method'>,
): Asked<Shape> {
  const { body } = answer;
  const raw = typeof body === 'object' && body !== null && 'data' in body ? body.data : body;
  const read = schema.safeParse(raw);
  if (read.success) return { ok: true, data: read.data, raw, answer };
  const complain = (output: Output): number => {
    output.complain([
      `latchkey: the answer is not understood: ${otherVersion}`,
      ...(method === 'GET' ? [] : ['It is no refusal: the change was made.']),
    ]);
    return exitCode.failed;
  };
  return { ok: false, problem: null, complain };
}

async function show<Shape>(
  options: GlobalOptions,
  output: Output,
  { data, raw, answer }: { data: Shape; raw: unknown; answer: Answer },
  view: AnswerView<Shape>,
): Promise<number> {
  if (options.json) output.printJson(raw);
  else await output.show(view.show(data, answer, hintFor(options)), view.now?.(data) ?? toldAt(answer));
  return view.judge?.(data, answer) ?? exitCode.done;
}

/** When the daemon answered, by its own clock, in epoch ms. */
export function toldAt({ headers }: Answer): number {
  const date = Date.parse(headers.date ?? '');
  return Number.isNaN(date) ? Date.now() : date;
}

/** An error's body (src/http/README.md, Problems). */
const problem = z.object({
  title: z.string(),
  code: z.string(),
  detail: z.string().optional(),
  errors: z.array(z.object({ parameter: z.string(), detail: z.string() })).optional(),
});

/** Prints an error answer and gives the exit code. */
function refuse(output: Output, { status, body }: Answer): number {
  const read = problem.safeParse(body);
  if (!read.success) {
    output.complain([`latchkey: the answer is ${status}, and not the daemon's: what is listening there?`]);
    return exitCode.failed;
  }
  const { title, detail, code, errors = [] } = read.data;
  output.complain(
    [`latchkey: ${title} (${code})`, ...(detail === undefined ? [] : [detail]), ...errors.map(formatFault)],
    { code, detail: detail ?? title, body },
  );
  return exitCode.failed;
}

/** Puts the parameter's name before the sentence unless it begins with it. */
function formatFault({ parameter, detail }: { parameter: string; detail: string }): string {
  return detail.startsWith(`${parameter} `) ? `  ${detail}` : `  ${parameter}: ${detail}`;
}
