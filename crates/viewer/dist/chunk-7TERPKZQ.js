import{D as t}from"./chunk-72R4YJ72.js";function n(r){return t.value.query.get(r)??""}function u(r){let e=n(r);return/^\d+$/.test(e)?Number(e):null}export{n as a,u as b};
