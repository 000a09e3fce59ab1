import { z } from 'zod';
import { type Args, type Builder, type Command, defineCommand, type GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import type { Shown } from '../format.ts';
import { type Hint, hintFor } from '../hint.ts';
import type { Output } from '../output.ts';
import type { DaemonResponse, Call } from './call.ts';
import { callDaemon } from './daemon.ts';
import { otherVersion } from './endpoint.ts';

/** How the `data` of a response is read and shown. */
export interface View<Data> {
  readonly schema: z.ZodType<Data>;
  /** `hint` writes suggested commands. */
  readonly show: (data: Data, answer: DaemonResponse, hint: Hint) => Shown;
  /** The daemon's time in epoch ms. Default: the `Date` of the response. */
  readonly now?: (data: Data) => number;
  /** The exit code for the response. Default: done. */
  readonly exitCode?: (data: Data, answer: DaemonResponse) => number;
}

/** Declares a command that sends one request to the running daemon and shows the response. */
export function defineRequest<const Declared extends Builder, Data>(
  command: Omit<Command, 'builder' | 'handler'> & {
    readonly builder: Declared;
    readonly request: (args: Args<Declared>) => Call;
    readonly view: View<Data>;
  },
): Command {
  const { request: toCall, view, ...rest } = command;
  return defineCommand({
    ...rest,
    handler: (args, output) => requestAndShow(args, output, toCall(args), view),
  });
}

/** Sends a request with the admin token, shows the response, and returns the exit code. */
export async function requestAndShow<Data>(
  options: GlobalOptions,
  output: Output,
  call: Call,
  view: View<Data>,
): Promise<number> {
  const result = await request(options, call, view.schema);
  if (!result.ok) return result.report(output);
  return await show(options, output, result, view);
}

/** The result of a request. `problem`: the code of the daemon's error. */
export type Result<Data> =
  | { readonly ok: true; readonly data: Data; readonly raw: unknown; readonly answer: DaemonResponse }
  | {
      readonly ok: false;
      readonly problem: string | null;
      /** Prints the error and returns the exit code. */
      readonly report: (output: Output) => number;
    };

/** Sends a request with the admin token. Prints nothing. */
export async function request<Data>(
  options: GlobalOptions,
  call: Call,
  schema: z.ZodType<Data>,
): Promise<Result<Data>> {
  const called = await callDaemon(options, call, true);
  if (!called.ok) {
    const report = (output: Output): number => {
      output.printError(called.lines);
      return called.code;
    };
    return { ok: false, problem: null, report };
  }
  const { answer } = called;
  if (answer.status < 300) return parse(answer, schema, call);
  const code = problem.safeParse(answer.body).data?.code ?? null;
  return { ok: false, problem: code, report: (output) => printRefusal(output, answer) };
}

/** Shows a 2xx response and returns the exit code. */
export async function showResponse<Data>(
  options: GlobalOptions,
  output: Output,
  answer: DaemonResponse,
  view: View<Data>,
): Promise<number> {
  const result = parse(answer, view.schema, {});
  return result.ok ? await show(options, output, result, view) : result.report(output);
}

function parse<Data>(
  answer: DaemonResponse,
  schema: z.ZodType<Data>,
  { method = 'GET' }: Pick<Call, 'method'>,
): Result<Data> {
  const { body } = answer;
  const raw = typeof body === 'object' && body !== null && 'data' in body ? body.data : body;
  const read = schema.safeParse(raw);
  if (read.success) return { ok: true, data: read.data, raw, answer };
  const report = (output: Output): number => {
    output.printError([
      `latchkey: cannot read the daemon's reply: ${otherVersion}`,
      ...(method === 'GET' ? [] : ['The change was made; only the reply could not be read.']),
    ]);
    return exitCode.failed;
  };
  return { ok: false, problem: null, report };
}

async function show<Data>(
  options: GlobalOptions,
  output: Output,
  { data, raw, answer }: { data: Data; raw: unknown; answer: DaemonResponse },
  view: View<Data>,
): Promise<number> {
  if (options.json) output.printJson(raw);
  else await output.show(view.show(data, answer, hintFor(options)), view.now?.(data) ?? answeredAt(answer));
  return view.exitCode?.(data, answer) ?? exitCode.done;
}

/** When the daemon responded, by its own clock, in epoch ms. */
export function answeredAt({ headers }: DaemonResponse): number {
  const date = Date.parse(headers.date ?? '');
  return Number.isNaN(date) ? Date.now() : date;
}

/** The body of an error (src/http/README.md, Problems). */
const problem = z.object({
  title: z.string(),
  code: z.string(),
  detail: z.string().optional(),
  errors: z.array(z.object({ parameter: z.string(), detail: z.string() })).optional(),
});

function printRefusal(output: Output, { status, body }: DaemonResponse): number {
  const read = problem.safeParse(body);
  if (!read.success) {
    output.printError([`latchkey: got HTTP ${status} from something that is not Latchkey`]);
    return exitCode.failed;
  }
  const { title, detail, code, errors = [] } = read.data;
  output.printError(
    [`latchkey: ${title} (${code})`, ...(detail === undefined ? [] : [detail]), ...errors.map(formatError)],
    { code, detail: detail ?? title, body },
  );
  return exitCode.failed;
}

/** Puts the name of the parameter before the sentence, unless the sentence starts with it. */
function formatError({ parameter, detail }: { parameter: string; detail: string }): string {
  return detail.startsWith(`${parameter} `) ? `  ${detail}` : `  ${parameter}: ${detail}`;
}
