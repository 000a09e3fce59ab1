import type { Example } from '../wire/common/examples.ts';
import { describeParameter, type Parameter } from './schemas.ts';

type Content = Readonly<Record<string, { schema: object; example?: unknown }>>;

/** An operation of a finished document, as far as it is changed here. */
export type Operation = {
  operationId: string;
  parameters?: readonly Parameter[];
  requestBody?: { content: Content };
  responses: Readonly<Record<string, { content?: Content }>>;
};

/** Tells of an operation what may be sent empty, and an example. */
export function describeOperation(operation: Operation, example: Example | undefined): Operation {
  const { parameters = [], requestBody, responses } = operation;
  const { path = {}, query = {}, body, status = 0, answer } = example ?? {};
  const sent = { ...path, ...query };
  const answered = responses[status];
  return {
    ...operation,
    parameters: parameters.map((parameter) => ({
      ...describeParameter(parameter),
      ...(parameter.name in sent && { example: sent[parameter.name] }),
    })),
    ...(requestBody !== undefined && {
      requestBody: { ...requestBody, content: withExample(requestBody.content, body) },
    }),
    ...(answered?.content !== undefined && {
      responses: { ...responses, [status]: { ...answered, content: withExample(answered.content, answer) } },
    }),
  };
}

function withExample(content: Content, example: unknown): Content {
  if (example === undefined) return content;
  const media = Object.entries(content).map(([type, its]) => [
    type,
    type === 'text/csv' ? its : { ...its, example },
  ]);
  return Object.fromEntries(media) as Content;
}
