import { type ActivationObject, activationObject } from '../../../wire/issuer/activation.ts';
import { defineRequest, type View } from '../../client/request.ts';
import { type Command, positional } from '../../command.ts';
import { type Cell, formatFields, instant, type Tone, toned, whole } from '../../format.ts';

export const activationsPath = '/admin/v1/activations';

const tones: Readonly<Record<ActivationObject['state'], Tone>> = {
  active: 'good',
  ended: 'faint',
  replaced: 'faint',
  blocked: 'bad',
};

/** The columns of a device in a list. */
export function activationRow(activation: ActivationObject): Readonly<Record<string, Cell>> {
  const { state, copied_at: copiedAt } = activation;
  return {
    activation: whole(activation.activation_id),
    device: activation.device_name ?? activation.device,
    state: [toned(state, tones[state]), ...(copiedAt === null ? [] : [toned(', copied', 'warning')])],
    seat: activation.seat_until === null ? 'none' : ['ends ', instant(activation.seat_until)],
    renewed: instant(activation.renewed_at),
  };
}

/** Everything about a device. */
export const activationView: View<ActivationObject> = {
  schema: activationObject,
  show: (activation) =>
    formatFields({
      ...activationRow(activation),
      'license key': whole(activation.license_key),
      product: activation.product_key,
      'device key': whole(activation.device),
      'lease ends': instant(activation.expires_at),
      created: instant(activation.created_at),
      'uses recorded': activation.uses_recorded,
      'uses returned': activation.uses_returned,
      'copied since': instant(activation.copied_at),
    }),
};

export function activationPath(id: string): string {
  return `${activationsPath}/${encodeURIComponent(id)}`;
}

/** Declares a command that takes the seat of a device away. */
export function defineActivationChange(
  change: 'end' | 'block',
  { describe, meaning, epilogue }: { describe: string; meaning: string; epilogue: string },
): Command {
  return defineRequest({
    command: `${change} <id>`,
    describe,
    builder: { id: positional('Id of the activation, as in activation list') },
    examples: [[`latchkey activation ${change} ACTIVATION_ID`, meaning]],
    epilogue,
    request: ({ id }) => ({ method: 'POST', path: `${activationPath(id)}/${change}` }),
    view: activationView,
  });
}
