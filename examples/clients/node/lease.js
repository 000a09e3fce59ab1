// What `latchkey lease setup` prints. A program that reads this from a file can be given other keys.
export const leases = {
  issuer: 'https://licenses.example.com',
  product: 'RGsF',
  roots: [], // while there are none, the program asks an agent, and believes what answers on its port
};
